import type { KnownNetworks } from "../../config/known-networks.ts";
import { readOrganizationFile } from "../../config/organization-file.ts";
import {
  assignRpcPorts,
  checkNetworksOf,
  readFirstRpcPort,
  readRpcPorts,
  readRpcUrl,
} from "../../config/rpc-ports.ts";
import {
  attempt,
  InvalidValue,
  logLevels,
  readAddress,
  readList,
  readNetwork,
  readOneOf,
  readOrigin,
  readWholeNumber,
} from "../../config/values.ts";
import { isVariableSet } from "../../config/variable-reader.ts";
import { describeUnset, rpcVariableOf } from "../../config/variables.ts";
import type { ForkOption, ForkOptions } from "../../harness/fork/fork-options.ts";
import type { Session } from "../../harness/run/session.ts";
import { readSettings } from "../../harness/run/session-settings.ts";
import { collision, resolveFacilitatorContracts } from "../../harness/setup/addresses.ts";
import type { ClaimedKind } from "../../protocol/answers.ts";
import {
  builtInNetworks,
  type NetworkName,
  type NetworkRegistry,
  networkNames,
} from "../../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem, collectProblems } from "../../util/errors.ts";
import { isLoopbackHost } from "../../util/loopback.ts";
import {
  contractsOf,
  flag,
  localOptions,
  type Options,
  option,
  textOption,
  type Values,
  variableOption,
} from "../kit/command.ts";

const lineFormats = ["text", "json"] as const;

export const upOptions = {
  ...localOptions,
  fork: option(
    "NAMES",
    "fork real chains: of the networks that are named, or of all whose *_RPC_URL is set; NAME=URL and NAME=RECORDING say what to fork",
    { example: "base,polygon=polygon.fork.json.gz", mayBeBare: true, read: readForkRequests },
  ),
  open: flag(
    "let requests without an API key act for the local organization, and `POST /close` end this; for test suites that know no keys",
  ),
  plain: flag(
    "stand in for a public facilitator: the same as --open --pay-to any, so that a shop needs the URL and nothing else, and as strict, as lenient and with the same reasons as the public reference facilitator",
  ),
  claim: option(
    "KIND@NETWORK",
    "list a kind at /supported that is refused when it is used, for servers that start with it alone; several, separated by commas",
    {
      read: readList("claim", readClaim, ({ scheme, network }) => `${scheme}@${network}`),
      example: "exact@solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1",
    },
  ),
  "rpc-port": option(
    "NETWORK=PORT",
    "the port of a network's node; several, separated by commas (default: any free ones)",
    { read: readRpcPorts, example: "base-sepolia=8545" },
  ),
  "rpc-ports": option(
    "PORT..",
    "the ports of all nodes: this one for the first network, the next for the second, and so on",
    { read: readFirstRpcPort, example: "8545.." },
  ),
  asset: variableOption("LOCAL_ASSETS", { placeholder: "NETWORK=ADDRESS" }),
  recipient: option(
    "ADDRESS",
    "where the organization is paid, on every network (default: a published account)",
    { read: readAddress, example: "0x857b06519E91e3A54538791bDbb0E22373e36b66" },
  ),
  organizations: textOption(
    "FILE",
    "JSON file with organizations besides that one, with recipients and limits: docs/guides/harness.md",
    { example: "organizations.json" },
  ),
  shop: option(
    "URL",
    "put a recording proxy in front of the shop there; clients that buy at the proxy's address, which is printed, show the whole exchange in the studio, `why` and `logs`",
    { read: readOrigin, example: "http://127.0.0.1:3000" },
  ),
  "shop-port": option("PORT", "the port of that proxy (default: the one after --port)", {
    read: readWholeNumber(0, 65_535),
    example: "4403",
  }),
  state: textOption(
    "FILE",
    "file to save the session to when this ends by Ctrl-C, SIGTERM or `POST /close`, and to go on from at the next start: chains, ledger, story, faults, and the settings that are not given here; see also state save",
    { example: "x402.state" },
  ),
  "settle-wait": variableOption("SETTLE_WAIT_MS", {
    placeholder: "MS",
    describe: `how long a settle waits for its outcome, in milliseconds (default: ${describeUnset("SETTLE_WAIT_MS")})`,
  }),
  "log-level": variableOption("LOG_LEVEL", {
    placeholder: "LEVEL",
    describe: `what the service logs to stderr: ${logLevels.join(", ")}`,
    default: "warn",
    example: "info",
  }),
  journal: flag("keep a journal of what the service does, for connectHarness(…).journal"),
  "no-recovery": flag("leave direct submissions to the token stranded, as `serve` without a recoverer"),
  "no-demo": flag("make no sample payments"),
  quiet: flag("print no line for each verify and settle"),
  "log-format": option(
    "FORMAT",
    `how these lines are written: ${lineFormats.join(" or ")}; with --json they are left out unless this is given`,
    { read: readOneOf<(typeof lineFormats)[number]>(lineFormats), example: "json" },
  ),
  "ready-line": option(
    "TEXT",
    "print this line when everything is ready, for a test suite that waits for it",
    { read: readLine, example: '"Facilitator listening"' },
  ),
  seed: option(
    "N",
    "makes runs repeatable, to the hash of each block: chains with a clock of their own, and no sample payments",
    { example: "1", read: readWholeNumber(0, 2_147_483_647) },
  ),
  env: flag(
    "print lines for a .env when ready, and nothing else: URL, key, payTo, payer, RPC URLs; where an up listens at the port, those of that one",
  ),
  json: flag(
    "print one line of JSON when ready, and nothing else; where an up listens at the port, that of that one",
  ),
} as const satisfies Options;

/** Finds problems in combinations of values that are valid on their own. */
export function checkUp(values: GivenValues): readonly ConfigurationProblem[] {
  return [
    ...checkContracts(values),
    ...checkNetworksOf("rpc-port", values["rpc-port"], values.networks),
    ...checkNetworksOf("asset", values.asset, values.networks),
    ...checkRpcPorts(values),
    ...checkOpen(values),
    ...checkPrinted(values),
    ...checkSeed(values),
    ...checkOrganizations(values),
    ...checkState(values),
    ...checkShop(values),
  ];
}

function checkState({ state, seed, fork }: GivenValues): readonly ConfigurationProblem[] {
  if (state === undefined || (seed === undefined && fork === undefined)) return [];
  const problem = "chains of --seed begin the same each time, and those of --fork with the real ones";
  return [{ name: "--state", problem }];
}

/** The port of the proxy in front of the shop; by default the one after the facilitator's. */
export function shopPortOf({ port, "shop-port": own }: { port: number; "shop-port"?: number | undefined }) {
  return own ?? (port === 0 ? 0 : port + 1);
}

function checkShop({ shop, port = 0, ...values }: GivenValues): readonly ConfigurationProblem[] {
  if (shop === undefined) {
    const isAlone = values["shop-port"] !== undefined;
    return isAlone ? [{ name: "--shop-port", problem: "goes with --shop" }] : [];
  }
  const { hostname, port: at } = new URL(shop);
  const taken = [port, shopPortOf({ port, ...values })].filter((one) => one !== 0);
  if (!isLoopbackHost(hostname.replace(/^\[|\]$/g, "")) || !taken.includes(Number(at))) return [];
  const problem = `names port ${at}, which is the facilitator's or the proxy's own`;
  return [{ name: "--shop", problem, example: "http://127.0.0.1:3000" }];
}

function checkOrganizations({ organizations, networks }: GivenValues): readonly ConfigurationProblem[] {
  // Problems with the networks are reported for their own option.
  if (organizations === undefined || networks === undefined) return [];
  const read = attempt(() => readOrganizationFile(organizations, networks));
  return "problem" in read ? [{ name: "--organizations", problem: read.problem }] : [];
}

type GivenValues = Partial<Values<typeof upOptions>>;

/** The facilitator contract's addresses, which must differ from those of the tokens. */
export function resolveContracts(values: GivenValues, known: NetworkRegistry = builtInNetworks) {
  const { asset = {} } = values;
  const assets = known.all.map(({ name, usdc }) => asset[name] ?? usdc);
  return resolveFacilitatorContracts(contractsOf(values), assets);
}

/** The settings that decide what `up` answers: the given options, otherwise those of the session that it continues. */
export function planUp(values: Values<typeof upOptions>, known: KnownNetworks, session: Session | undefined) {
  const { plain, asset, claim } = values;
  const saved = session?.settings && readSettings(session.settings, known);
  // Naming all five networks is the same as the default.
  const isUsual = values.networks.join() === networkNames.join();
  const names = saved !== undefined && isUsual ? saved.networks : values.networks;
  const assets = { ...saved?.assets, ...asset };
  const { mainnet, testnet } = contractsOf(values);
  const { mainnet: savedMainnet, testnet: savedTestnet } = saved?.facilitatorContracts ?? {};
  const knownNetworks = saved?.knownNetworks ?? known;
  return {
    networks: names,
    knownNetworks,
    facilitatorContracts: resolveFacilitatorContracts(
      { mainnet: mainnet ?? savedMainnet, testnet: testnet ?? savedTestnet },
      knownNetworks.all.map(({ name, usdc }) => assets[name] ?? usdc),
    ),
    assets,
    recipient: values.recipient ?? saved?.recipient,
    payTo: values["pay-to"] ?? (plain ? "any" : (saved?.payTo ?? "contract")),
    strictness: plain ? "reference" : (saved?.strictness ?? "spec"),
    reasons: values.reasons ?? (plain ? "reference" : (saved?.reasons ?? "spec")),
    organizations:
      values.organizations === undefined
        ? (saved?.organizations ?? [])
        : readOrganizationFile(values.organizations, names),
    settleWaitMs: values["settle-wait"] ?? saved?.settleWaitMs,
    recovery: !values["no-recovery"] && (saved?.recovery ?? true),
    discovery: values.discovery || (saved?.discovery ?? false),
    claims: claim ?? saved?.claims,
    // A session file from someone else must not open this machine to others.
    isOpen: values.open || plain || (saved?.open === true && isLoopbackHost(values.host)),
  } as const;
}

function checkContracts(values: GivenValues): readonly ConfigurationProblem[] {
  const problems: ConfigurationProblem[] = [];
  collectProblems(problems, () => resolveContracts(values));
  if (problems.length > 0) return problems;
  return Object.entries(values.asset ?? {}).flatMap(([network, { address }]) => {
    const problem = collision(address, []);
    return problem === undefined ? [] : [{ name: "--asset", problem: `that of ${network} ${problem}` }];
  });
}

function checkRpcPorts({ networks: names = [], ...values }: GivenValues): readonly ConfigurationProblem[] {
  const ports = assignRpcPorts(names, values["rpc-port"], values["rpc-ports"]);
  return Object.entries(ports).flatMap(([name, port], index, all) => {
    if (port > 65_535) return [{ name: "--rpc-ports", problem: `leaves no port for ${name}` }];
    if (port === values.port)
      return [{ name: "--rpc-port", problem: `that of ${name} is the facilitator's own` }];
    const [other] = all.slice(0, index).find(([, taken]) => taken === port) ?? [];
    return other === undefined
      ? []
      : [{ name: "--rpc-port", problem: `${name} and ${other} have the same port` }];
  });
}

function checkSeed({ seed, fork }: GivenValues): readonly ConfigurationProblem[] {
  if (seed === undefined || fork === undefined) return [];
  return [{ name: "--seed", problem: "a fork goes by the clock, so its runs cannot be repeated" }];
}

function checkOpen({ open, plain, host, ...values }: GivenValues): readonly ConfigurationProblem[] {
  const problems: ConfigurationProblem[] = [];
  const payTo = values["pay-to"];
  if (plain === true && payTo !== undefined && payTo !== "any") {
    const problem = `is --open with --pay-to any, and not with --pay-to ${payTo}`;
    problems.push({ name: "--plain", problem, example: `--open --pay-to ${payTo}` });
  }
  if ((open === true || plain === true) && host !== undefined && !isLoopbackHost(host)) {
    const problem = "takes requests without a key, so it listens on this machine alone";
    problems.push({ name: plain === true ? "--plain" : "--open", problem, example: "--host 127.0.0.1" });
  }
  return problems;
}

/** Only one thing is printed when ready. */
function checkPrinted({ env, json, ...values }: GivenValues): readonly ConfigurationProblem[] {
  if (json !== true) return [];
  const problems: ConfigurationProblem[] = [];
  if (values["ready-line"] !== undefined) {
    problems.push({ name: "--ready-line", problem: "--json prints one line when ready, and nothing else" });
  }
  if (env === true) {
    problems.push({ name: "--env", problem: "prints lines, and --json one line of JSON: take one of them" });
  }
  return problems;
}

/** Reads a kind of payment, given as scheme and network: version 2 for a CAIP-2 name, otherwise version 1. */
function readClaim(text: string): ClaimedKind {
  const [, scheme, network] = /^([a-z][a-z0-9-]*)@([a-z0-9-]+(?::[-_a-zA-Z0-9/+=]+)?)$/.exec(text) ?? [];
  if (scheme === undefined || network === undefined) {
    throw new InvalidValue("is not a scheme and a network with an @ between them");
  }
  return { x402Version: network.includes(":") ? 2 : 1, scheme, network };
}

function readLine(text: string): string {
  if (/\p{Cc}/u.test(text)) throw new InvalidValue("is not one line of text");
  return text;
}

/**
 * The parsed `--fork`: a source for each network, or undefined for the URL in the network's variable; "all" for every
 * network with a variable; undefined without `--fork`.
 */
export type ForkRequests = ReadonlyMap<NetworkName, ForkOption | undefined> | "all" | undefined;

/** Reads `--fork`: bare, `base,polygon`, `base=https://…`, or `base=FILE`. Its errors show no URL. */
export function readForkRequests(text: string, known?: NetworkRegistry): ForkRequests {
  if (text === "") return "all";
  const requests = new Map<NetworkName, ForkOption | undefined>();
  for (const part of text.split(",")) {
    const [, name = "", source] = /^([^=]*)(?:=(.*))?$/.exec(part.trim()) ?? [];
    if (/^https?:/i.test(name)) throw new InvalidValue("a URL needs the name of its network before it");
    const network = readNetwork(name, known);
    if (requests.has(network)) throw new InvalidValue(`names ${network} twice`);
    if (source === "") throw new InvalidValue(`has nothing after ${network}=`);
    requests.set(network, source === undefined ? undefined : readSource(source));
  }
  return requests;
}

function readSource(text: string): ForkOption {
  return /^[a-z]+:\/\//i.test(text) ? text : { recording: text };
}

/**
 * The sources of forked chains, with the URLs from the environment.
 *
 * @throws {ConfigurationError} if a network has no URL, or is not started
 */
export function resolveForks(
  requests: ForkRequests,
  networks: readonly NetworkName[],
  env: Readonly<Record<string, string | undefined>>,
): ForkOptions {
  if (requests === undefined) return {};
  const problems: ConfigurationProblem[] = [];
  const forks: { [N in NetworkName]?: ForkOption } = {};
  const asked =
    requests === "all"
      ? networks.filter((name) => isVariableSet(env, rpcVariableOf(name)))
      : [...requests.keys()];
  for (const network of asked) {
    if (!networks.includes(network)) {
      problems.push({
        name: "--fork",
        problem: `${network} is not started; started: ${networks.join(", ")}`,
      });
      continue;
    }
    const source = requests === "all" ? undefined : requests.get(network);
    const found = source ?? collectProblems(problems, () => readRpcUrl(network, env, `to fork ${network}`));
    if (found !== undefined) forks[network] = found;
  }
  if (asked.length === 0) {
    problems.push({
      name: "--fork",
      problem: "none of these networks has its RPC URL in the environment",
      example: `${rpcVariableOf(networks[0] ?? "base")}=https://…`,
    });
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return forks;
}
