import { isIP } from "node:net";
import type { Capture } from "../../capture/capture.ts";
import { builtIn } from "../../config/known-networks.ts";
import { type NetworkData, readNetworkData, readNetworkFile } from "../../config/network-file.ts";
import {
  type LocalOrganization,
  type OrganizationData,
  readOrganizations,
} from "../../config/organization-file.ts";
import { settleWaitBoundsMs } from "../../config/settle-wait.ts";
import { attempt, isHostName, type LogLevel, logLevels } from "../../config/values.ts";
import { ConfigurationError, type ConfigurationProblem, collectProblems } from "../../errors.ts";
import { readAddress } from "../../protocol/address.ts";
import type { Address } from "../../protocol/hex.ts";
import {
  type Asset,
  type BuiltInNetworkName,
  type Network,
  type NetworkName,
  type NetworkRegistry,
  networkNames,
} from "../../protocol/networks.ts";
import {
  aBoolean,
  aList,
  anObject,
  anything,
  aText,
  aTextOrObject,
  findGivenProblems,
  oneOf,
  texts,
  type Wanted,
  wholeNumber,
} from "../../util/given.ts";
import { type ForkOption, type ForkOptions, readForkOptions } from "../fork/fork-options.ts";
import { requireNode } from "../nodes/require-node.ts";
import type { StartOptions } from "../run/start-options.ts";
import { collision, resolveFacilitatorContracts } from "../stage/addresses.ts";
import { findChainProblems } from "../stage/chains.ts";
import type { Harness } from "./harness-api.ts";
import { type CaptureSource, readCaptureOption } from "./read-capture-option.ts";

/** The token of a network. What is left out is as of the network's USDC. */
export type AssetOptions = { address: Address; name?: string; version?: string; decimals?: number };

/** How a harness is started. Everything has a default. */
export type HarnessOptions<N extends NetworkName = BuiltInNetworkName> = {
  /** Which chains to start; all five by default. Each costs some 40 MB of memory. */
  networks?: readonly N[];
  /**
   * Networks besides the five: the path of a network file, or what would be in it. Only those start that `networks`
   * names. See docs/guides/networks.md.
   *
   * @example
   * await createHarness({ networkFile: "networks.json", networks: ["base", "my-chain"] })
   */
  networkFile?: string | NetworkData | readonly NetworkData[];
  /**
   * Where the facilitator contract stands: on base, optimism and polygon, and on the two testnets. Those of your
   * deployment make clients sign what they sign in production.
   */
  contracts?: { mainnet?: Address; testnet?: Address };
  /** Tokens other than USDC, or at other addresses; see {@link AssetOptions}. */
  assets?: Partial<Record<N, AssetOptions>>;
  /** Where the organization is paid, on every network; at a published account by default. */
  recipient?: Address;
  /**
   * Organizations besides that one, with recipients and limits of their own. Each has an API key, by which
   * {@link Harness.as} speaks for it.
   *
   * @example
   * organizations: [{ id: "acme", recipient: "0x…", networks: { base: { minimumAmount: 1_000_000n } } }]
   */
  organizations?: readonly OrganizationData[];
  /**
   * What chains are forked from: a JSON-RPC URL of the network, or a recording of it that needs no network. The token
   * is the network's real USDC there, and everything else of the network is at hand. See docs/guides/forks.md.
   *
   * @example
   * fork: { base: "https://base.example", polygon: { recording: "test/polygon.fork.json.gz" } }
   */
  fork?: Partial<Record<N, ForkOption>>;
  /** The IP address that the facilitator listens on; one of this machine alone by default. */
  host?: string;
  /** Names besides `localhost` by which other processes may control the harness, such as that of a container. */
  allowHosts?: readonly string[];
  /** The facilitator's port; any free one by default. */
  port?: number;
  /** The ports of nodes; free ones by default. */
  rpcPorts?: Partial<Record<N, number>>;
  /** How long a settle waits for its outcome, in milliseconds; as `serve` does by default. */
  settleWaitMs?: number;
  /**
   * Whether the service recovers payments whose authorization was submitted straight to the token, as in
   * production with `RECOVERER_PRIVATE_KEY`; it does by default.
   */
  recovery?: boolean;
  /** Whether {@link Harness.journal} is kept; it is by default. Without it the service is a little quicker. */
  journal?: boolean;
  /** Whether the facilitator serves the studio too, at `/studio`; it does not by default. */
  studio?: boolean;
  /** "fatal" by default: tests provoke failures, and those are no news. */
  logLevel?: LogLevel;
  /**
   * Makes runs repeatable, to the hash of each block: the same calls give the same chains. Chain time begins at
   * 2026-01-01T00:00:00Z then, and moves by one second with each block and by `advanceTime` only.
   */
  seed?: number;
  /**
   * A payment that `x402-kit capture` wrote to a file: the path, or what is in the file. One chain starts, with the
   * contract, the token, the payer's state, the head and the clock that the payment was judged by.
   * See docs/guides/captures.md.
   *
   * @example
   * const harness = await createHarness({ capture: "bug.x402.json" });
   * expect((await harness.captured.replay()).verdict).toBe(harness.captured.verdict);
   */
  capture?: string | Capture;
  /** Path of the anvil binary; the one of the package `@foundry-rs/anvil` by default. */
  anvilBinary?: string;
  /** Gives up the start. */
  signal?: AbortSignal;
};

/** The options of a harness, read. */
export type HarnessPlan<N extends NetworkName> = {
  names: readonly N[];
  start: Omit<StartOptions, "logger">;
  logLevel: LogLevel;
  /** Where it is made of a captured payment. */
  source: CaptureSource | undefined;
};

/**
 * Reads the options of a harness, which may come from JavaScript.
 *
 * @throws {ConfigurationError} with everything that is wrong with them
 * @throws {KitError} on a Node that is too old
 */
export function readHarnessOptions<N extends NetworkName>(options: HarnessOptions<N>): HarnessPlan<N> {
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
  } = options;
  const known = readKnownNetworks(options.networkFile, add);
  const source =
    options.capture === undefined
      ? undefined
      : collectProblems(problems, () => readCaptureOption(options.capture ?? "", known));
  const usual: readonly NetworkName[] = source === undefined ? networkNames : [source.capture.chain.network];
  const given = options.networks ?? (usual as readonly N[]);
  const names: readonly N[] = Array.isArray(given) ? given : [];
  if (source !== undefined) checkBesideCapture(options, source, add);
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
  if (source !== undefined) assets[source.capture.chain.network] = source.capture.chain.asset;
  const recipient = options.recipient === undefined ? undefined : readAddress(String(options.recipient));
  if (recipient?.problem !== undefined) add("recipient", `${options.recipient} ${recipient.problem}`);
  const organizations = readOrganizationsOption(options.organizations, names, add);
  const { fork = {} }: { fork?: ForkOptions | undefined } = options;
  const forks = collectProblems(problems, () => readForkOptions(fork, names));
  if (seed !== undefined && forks !== undefined && forks.size > 0) {
    add("seed", "a fork goes by the clock, so its runs cannot be repeated");
  }
  const contracts = collectProblems(problems, () =>
    resolveFacilitatorContracts(
      source?.contracts ?? options.contracts,
      known.all.map(({ name, usdc }) => assets[name] ?? usdc),
      { mainnet: "contracts.mainnet", testnet: "contracts.testnet" },
    ),
  );
  if (problems.length > 0 || contracts === undefined) throw new ConfigurationError(problems);
  const { rpcPorts, anvilBinary, signal } = options;
  return {
    names,
    logLevel,
    source,
    start: {
      slice: source?.slice,
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
      organizations,
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

/** Options that stand for themselves: one that is wrong hinders no other from being read. */
const simpleOptions = {
  port: { ...wholeNumber(0, 65_535), example: "4402" },
  settleWaitMs: { ...wholeNumber(settleWaitBoundsMs.least, settleWaitBoundsMs.most), example: "5000" },
  logLevel: oneOf(logLevels),
  recovery: aBoolean,
  journal: aBoolean,
  studio: aBoolean,
  seed: { what: "a whole number", fits: Number.isSafeInteger, example: "1" },
} as const satisfies Partial<Record<keyof HarnessOptions, Wanted>>;

/** The kind of value that each option takes; options of kind `anything` are parsed above. */
export const harnessOptions: Readonly<Record<keyof HarnessOptions, Wanted>> = {
  networks: { ...aList, example: '["base"]' },
  networkFile: anything,
  contracts: anObject,
  assets: anObject,
  recipient: aText,
  organizations: aList,
  fork: anything,
  host: anything,
  allowHosts: { ...texts, example: '["facilitator"]' },
  ...simpleOptions,
  rpcPorts: anObject,
  capture: { ...aTextOrObject, example: "bug.x402.json" },
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
 * Gives the names that are no options, and the simple options that are wrong.
 *
 * @throws {ConfigurationError} with the others as well, when something is not even of the kind that its reader takes
 */
function checkShape(options: HarnessOptions<NetworkName>): ConfigurationProblem[] {
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

/** What a captured payment brings along, and cannot be had otherwise. */
const broughtByCapture = ["contracts", "assets", "fork", "seed"] as const;

function checkBesideCapture(
  { networks, ...options }: HarnessOptions<NetworkName>,
  { capture }: CaptureSource,
  add: Add,
): void {
  const { network } = capture.chain;
  if (networks !== undefined && (networks.length !== 1 || networks[0] !== network)) {
    add(
      "networks",
      `the captured payment is of ${network}, and that chain alone is started`,
      `["${network}"]`,
    );
  }
  if (options.journal === false) add("journal", "is needed to tell how a captured payment is judged");
  for (const name of broughtByCapture) {
    if (options[name] !== undefined) add(name, "comes with the capture, and cannot be given beside it");
  }
}

const notOneOf = (known: NetworkRegistry) => `is not one of ${known.names.join(", ")}`;

/** The five, and those of a file or given as data. */
function readKnownNetworks(given: HarnessOptions["networkFile"], add: Add): NetworkRegistry {
  if (given === undefined) return builtIn;
  const read = attempt(() => (typeof given === "string" ? readNetworkFile(given) : readNetworkData(given)));
  if ("value" in read) return read.value;
  add("networkFile", read.problem);
  return builtIn;
}

function readOrganizationsOption(
  given: HarnessOptions["organizations"],
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

/** The token that is asked for; USDC, and a problem, where it cannot be. */
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
