import { isIP } from "node:net";
import { builtIn } from "../../config/known-networks.ts";
import { readNetworkData, readNetworkFile } from "../../config/network-file.ts";
import { type LocalOrganization, readOrganizations } from "../../config/organization-file.ts";
import { settleWaitBoundsMs } from "../../config/serve-config.ts";
import { attempt, isHostName, type LogLevel, logLevels, readOrigin } from "../../config/values.ts";
import { dialects } from "../../protocol/catalogue.ts";
import { readAddress } from "../../protocol/hex.ts";
import {
  type Asset,
  type Network,
  type NetworkName,
  type NetworkRegistry,
  networkNames,
} from "../../protocol/networks.ts";
import { payToPolicies } from "../../protocol/signed-payment.ts";
import { ConfigurationError, type ConfigurationProblem, collectProblems } from "../../util/errors.ts";
import {
  aBoolean,
  aList,
  anObject,
  anything,
  aText,
  findGivenProblems,
  oneOf,
  texts,
  type Wanted,
  wholeNumber,
} from "../../util/given.ts";
import { requireNode } from "../../util/self-command.ts";
import { type ForkOptions, readForkOptions } from "../fork/fork-options.ts";
import type { StartOptions } from "../run/running-harness.ts";
import { collision, resolveFacilitatorContracts } from "../setup/addresses.ts";
import { findChainProblems } from "../setup/chains.ts";
import type { AssetOptions, HarnessSettings } from "./harness-api.ts";

export type HarnessPlan<N extends NetworkName> = {
  names: readonly N[];
  start: Omit<StartOptions, "logger">;
  logLevel: LogLevel;
};

/**
 * Reads and validates the options of a harness, which may come from JavaScript.
 *
 * @throws {ConfigurationError} listing everything that is wrong with them
 * @throws {KitError} if Node is too old
 */
export function readHarnessOptions<N extends NetworkName>(options: HarnessSettings<N>): HarnessPlan<N> {
  requireNode();
  const problems = checkShape(options);
  const add = (name: string, problem: string, example?: string) =>
    problems.push({ name, problem, ...(example !== undefined && { example }) });

  const {
    seed,
    logLevel = "fatal",
    journal = true,
    studio = false,
    recovery = true,
    host = "127.0.0.1",
    port = 0,
    settleWaitMs,
    payTo,
    reasons,
  } = options;
  const known = readKnownNetworks(options.networkFile, add);
  const given = options.networks ?? (networkNames as readonly NetworkName[] as readonly N[]);
  const names: readonly N[] = Array.isArray(given) ? given : [];
  problems.push(...findChainProblems({ networks: names, rpcPorts: options.rpcPorts, knownNetworks: known }));
  const isRunning = (option: string, network: string): network is NetworkName => {
    const running = names.some((name) => name === network);
    if (!running) {
      add(option, known.named(network) ? "is not among the networks of this harness" : notOneOf(known));
    }
    return running;
  };
  if (isIP(host) === 0 && host !== "localhost") add("host", `"${host}" is not an IP address`, "127.0.0.1");
  for (const [index, name] of (options.allowHosts ?? []).entries()) {
    if (!isHostName(name)) add(`allowHosts[${index}]`, `"${name}" is not the name of a host`, "facilitator");
  }

  const assets: Partial<Record<NetworkName, Asset>> = {};
  for (const [network, asset] of entriesOf(options.assets)) {
    if (isRunning(`assets.${network}`, network)) {
      const found = known.named(network);
      if (found !== undefined) assets[network] = readAsset(found, asset, add);
    }
  }
  for (const [network] of entriesOf(options.rpcPorts)) isRunning(`rpcPorts.${network}`, network);
  const recipient = options.recipient === undefined ? undefined : readAddress(String(options.recipient));
  if (recipient?.problem !== undefined) add("recipient", `${options.recipient} ${recipient.problem}`);
  const shop = attempt(() => options.shop && { target: readOrigin(options.shop), port: 0 });
  if ("problem" in shop) add("shop", shop.problem, "http://127.0.0.1:3000");
  const organizations = readOrganizationsOption(options.organizations, names, add);
  const { fork = {} }: { fork?: ForkOptions | undefined } = options;
  const forks = collectProblems(problems, () => readForkOptions(fork, names));
  if (seed !== undefined && forks !== undefined && forks.size > 0) {
    add("seed", "a fork goes by the clock, so its runs cannot be repeated");
  }
  const contracts = collectProblems(problems, () =>
    resolveFacilitatorContracts(
      options.contracts,
      known.all.map(({ name, usdc }) => assets[name] ?? usdc),
      { mainnet: "contracts.mainnet", testnet: "contracts.testnet" },
    ),
  );
  if (problems.length > 0 || contracts === undefined) throw new ConfigurationError(problems);
  const { rpcPorts, anvilBinary, signal } = options;
  return {
    names,
    logLevel,
    start: {
      networks: names,
      knownNetworks: known,
      facilitatorContracts: contracts,
      assets,
      fork,
      host,
      allowHosts: options.allowHosts,
      port,
      rpcPorts,
      settleWaitMs,
      recipient: recipient?.address,
      payTo,
      reasons,
      organizations,
      shop: "value" in shop && shop.value ? shop.value : undefined,
      seed,
      recovery,
      journal,
      studio,
      anvilBinary,
      signal,
    },
  };
}

type Add = (name: string, problem: string, example?: string) => void;

/** Independent options: if one is wrong, the others can still be read. */
const simpleOptions = {
  port: { ...wholeNumber(0, 65_535), example: "4402" },
  settleWaitMs: { ...wholeNumber(settleWaitBoundsMs.least, settleWaitBoundsMs.most), example: "5000" },
  logLevel: oneOf(logLevels),
  payTo: { ...oneOf(payToPolicies), example: '"any"' },
  reasons: { ...oneOf(dialects), example: '"reference"' },
  recovery: aBoolean,
  journal: aBoolean,
  studio: aBoolean,
  seed: { what: "a whole number", fits: Number.isSafeInteger, example: "1" },
} as const satisfies Partial<Record<keyof HarnessSettings, Wanted>>;

/** The expected type of each option. Those of type `anything` are checked by their readers above. */
export const harnessOptions: Readonly<Record<keyof HarnessSettings, Wanted>> = {
  networks: { ...aList, example: '["base"]' },
  networkFile: anything,
  contracts: anObject,
  assets: anObject,
  recipient: aText,
  shop: aText,
  organizations: aList,
  fork: anything,
  host: anything,
  allowHosts: { ...texts, example: '["facilitator"]' },
  ...simpleOptions,
  rpcPorts: anObject,
  anvilBinary: aText,
  signal: { what: "an AbortSignal", fits: (value) => value instanceof AbortSignal },
};

const contractOptions = { mainnet: aText, testnet: aText };

const assetOptions: Readonly<Record<keyof AssetOptions, Wanted>> = {
  address: anything,
  name: aText,
  version: aText,
  decimals: anything,
};

/**
 * Returns the problems with unknown options and with simple options.
 *
 * @throws {ConfigurationError} listing all problems, if any other option does not even have the type that its reader expects
 */
function checkShape(options: HarnessSettings<NetworkName>): ConfigurationProblem[] {
  const own = findGivenProblems(options, harnessOptions);
  const { contracts, assets } = own.wrong.every(isSimple) ? options : {};
  const all = [
    own,
    ...(contracts === undefined ? [] : [findGivenProblems(contracts, contractOptions, "contracts")]),
    ...entriesOf(assets).map(([network, asset]) =>
      findGivenProblems(asset, assetOptions, `assets.${network}`),
    ),
  ];
  const problems = all.flatMap(({ unknown, wrong }) => [...unknown, ...wrong]);
  if (!all.every(({ wrong }) => wrong.every(isSimple))) throw new ConfigurationError(problems);
  return problems;
}

const isSimple = ({ name }: ConfigurationProblem) => Object.hasOwn(simpleOptions, name);

const notOneOf = (known: NetworkRegistry) => `is not one of ${known.names.join(", ")}`;

/** Returns the built-in networks and those of the network file. If that is invalid, adds a problem and omits them. */
function readKnownNetworks(given: HarnessSettings["networkFile"], add: Add): NetworkRegistry {
  if (given === undefined) return builtIn;
  const read = attempt(() => (typeof given === "string" ? readNetworkFile(given) : readNetworkData(given)));
  if ("value" in read) return read.value;
  add("networkFile", read.problem);
  return builtIn;
}

function readOrganizationsOption(
  given: HarnessSettings["organizations"],
  networks: readonly NetworkName[],
  add: Add,
): readonly LocalOrganization[] {
  if (given === undefined) return [];
  const read = attempt(() => readOrganizations(given, networks));
  if ("value" in read) return read.value;
  add("organizations", read.problem);
  return [];
}

const decimalsOfTokens = wholeNumber(0, 36);

/** Returns the requested token. If it is invalid, adds a problem and returns the network's USDC. */
function readAsset({ name: network, usdc }: Network, asset: AssetOptions | undefined, add: Add): Asset {
  const { name = usdc.name, version = usdc.version, decimals = usdc.decimals } = asset ?? {};
  const refuse = (member: string, problem: string, example: string) => {
    add(`assets.${network}.${member}`, problem, example);
    return usdc;
  };
  const { address, problem } = readAddress(String(asset?.address));
  if (problem !== undefined) return refuse("address", `${asset?.address} ${problem}`, usdc.address);
  const taken = collision(address, []);
  if (taken !== undefined) return refuse("address", taken, usdc.address);
  const { what, fits } = decimalsOfTokens;
  if (!fits(decimals)) return refuse("decimals", `${decimals} is not ${what}`, "6");
  return { address, name: String(name), version: String(version), decimals };
}

function entriesOf<T>(record: Partial<Record<NetworkName, T>> | undefined): [NetworkName, T][] {
  return Object.entries(record ?? {}) as [NetworkName, T][];
}
