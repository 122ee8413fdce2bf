import { isPublishedKey } from "../payer/accounts.ts";
import type { Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import { isLoopbackHost } from "../util/loopback.ts";
import type { KnownNetwork } from "./known-networks.ts";
import {
  type NetworkConfig,
  type Operators,
  type ServeConfig,
  settleWaitDefaultsMs,
} from "./serve-config.ts";
import { readContracts, readFeeCaps, readRpcUrls, readServedNetworks } from "./served-networks.ts";
import { type NetworkKey, warnOfClearText } from "./values.ts";
import {
  createConfigurationReader,
  type Environment,
  freezeDeep,
  type VariableReader,
} from "./variable-reader.ts";
import { rpcVariableOf, variablesOf } from "./variables.ts";

/**
 * Reads the configuration of `serve` from the environment. An empty variable counts as unset.
 *
 * @throws ConfigurationError with all problems. No message repeats a secret or an RPC URL.
 */
export function readEnvironment(env: Environment): ServeConfig {
  const reader = createConfigurationReader(env);
  const warnings: ConfigurationProblem[] = [];
  const networks = readServedNetworks(reader, warnings);
  const operators = readOperators(reader, warnings);
  const recovererKey = readRecovererKey(reader, operators);
  const sponsorKey = readSponsorKey(reader, operators, networks);
  const authorizerKeys = readAuthorizerKeys(reader, operators);
  const apiKeyPepper = reader.read("API_KEY_PEPPER");
  if (!reader.isSet("API_KEY_PEPPER")) reader.refuse("API_KEY_PEPPER", "is needed");
  const settleWaitMs = reader.read("SETTLE_WAIT_MS");
  const host = reader.read("HOST");
  const config = {
    networks,
    recovererKey,
    sponsorKey,
    authorizerKeys,
    databaseUrl: reader.read("DATABASE_URL"),
    host,
    port: reader.read("PORT"),
    trustProxy: reader.read("TRUST_PROXY"),
    rateLimits: {
      key: reader.read("RATE_LIMIT_KEY"),
      address: reader.read("RATE_LIMIT_ADDRESS"),
    },
    maxSettles: reader.read("MAX_SETTLES"),
    metrics: readMetrics(reader),
    admin: readAdmin(reader),
    settleWaitMs,
    shutdown: readShutdown(reader),
    anonymousVerify: reader.read("ANONYMOUS_VERIFY"),
    docs: reader.read("API_DOCS"),
    discovery: reader.read("DISCOVERY"),
    corsOrigins: reader.read("CORS_ORIGINS"),
    logLevel: reader.read("LOG_LEVEL"),
    warnings: [
      ...warnings,
      ...warnOfProxies(reader, host),
      ...warnOfAdmin(reader),
      ...warnOfLongWaits(networks, settleWaitMs),
      ...warnOfGifts(networks, sponsorKey),
      ...warnOfDeployer(reader),
    ],
  };
  refuseSharedPorts(reader, config);
  if (reader.problems().length > 0 || operators === undefined || apiKeyPepper === undefined) {
    throw new ConfigurationError(reader.problems());
  }
  return freezeDeep({ ...config, operators, apiKeyPepper });
}

function readMetrics(reader: VariableReader): ServeConfig["metrics"] {
  const port = reader.read("METRICS_PORT");
  const host = reader.read("METRICS_HOST");
  if (reader.isSet("METRICS_HOST") && !reader.isSet("METRICS_PORT")) {
    reader.refuse("METRICS_PORT", "is needed with METRICS_HOST");
  }
  return port === undefined ? undefined : { host, port };
}

function readAdmin(reader: VariableReader): ServeConfig["admin"] {
  const port = reader.read("ADMIN_PORT");
  const host = reader.read("ADMIN_HOST");
  const token = reader.read("ADMIN_TOKEN");
  for (const name of ["ADMIN_HOST", "ADMIN_TOKEN"] as const) {
    if (reader.isSet(name) && !reader.isSet("ADMIN_PORT")) {
      reader.refuse("ADMIN_PORT", `is needed with ${name}`);
      return undefined;
    }
  }
  if (!reader.isSet("ADMIN_PORT")) return undefined;
  if (!reader.isSet("ADMIN_TOKEN")) reader.refuse("ADMIN_TOKEN", "is needed with ADMIN_PORT");
  return port === undefined || token === undefined ? undefined : { host, port, token };
}

/** Refuses the same port for two listeners, even at two addresses: the second one might fail or be shadowed. */
function refuseSharedPorts(
  reader: VariableReader,
  { port, metrics, admin }: Pick<ServeConfig, "port" | "metrics" | "admin">,
): void {
  const taken = new Map([[port, "PORT"]]);
  const others = { METRICS_PORT: metrics?.port, ADMIN_PORT: admin?.port };
  for (const name of ["METRICS_PORT", "ADMIN_PORT"] as const) {
    const own = others[name];
    if (own === undefined || own === 0) continue;
    const other = taken.get(own);
    if (other === undefined) taken.set(own, name);
    else reader.refuse(name, `is ${own}, and so is ${other}; give each a port of its own`);
  }
}

/** Warns if the deployer's key is set, because the admin can do more than the service needs. */
function warnOfDeployer(reader: VariableReader): ConfigurationProblem[] {
  if (!reader.isSet("DEPLOYER_PRIVATE_KEY")) return [];
  const problem =
    "is in the service's environment, which never needs it: who takes over the service would have the admin's powers. Keep it where deploy runs";
  return [{ name: "DEPLOYER_PRIVATE_KEY", problem }];
}

function warnOfAdmin(reader: VariableReader): ConfigurationProblem[] {
  if (!reader.isSet("ADMIN_PORT") || !["0.0.0.0", "::"].includes(reader.read("ADMIN_HOST"))) return [];
  const problem =
    "is every address of this machine: everyone who has the token and reaches it sees all payments, and it is plain HTTP";
  return [{ name: "ADMIN_HOST", problem, example: "127.0.0.1" }];
}

function readShutdown(reader: VariableReader): ServeConfig["shutdown"] {
  const drainDelayMs = reader.read("DRAIN_DELAY_MS");
  const timeoutMs = reader.read("SHUTDOWN_TIMEOUT_MS");
  if (drainDelayMs >= timeoutMs) {
    reader.refuse("DRAIN_DELAY_MS", `leaves nothing of the ${timeoutMs} ms of SHUTDOWN_TIMEOUT_MS`);
  }
  return { drainDelayMs, timeoutMs };
}

/** Warns if the proxies are not configured: rate limits count by address, so they must be known from the start. */
function warnOfProxies(reader: VariableReader, host: string): ConfigurationProblem[] {
  if (reader.isSet("TRUST_PROXY") || isLoopbackHost(host)) return [];
  const problem =
    "is not set: behind a proxy, all callers without a good API key count as one address; set it to false where there is none";
  return [{ name: "TRUST_PROXY", problem, example: "false" }];
}

function warnOfLongWaits(
  networks: readonly NetworkConfig[],
  settleWaitMs = Math.min(...Object.values(settleWaitDefaultsMs)),
): ConfigurationProblem[] {
  return networks.flatMap(({ name, confirmations, blockTimeMs }) => {
    const takesMs = confirmations * blockTimeMs;
    if (takesMs < settleWaitMs) return [];
    const problem = `${confirmations} blocks of ${name} take some ${takesMs / 1000} s, longer than a settle waits: it would never answer at once`;
    return [{ name: "CONFIRMATIONS", problem }];
  });
}

/** Reads where the operators' keys are; undefined if that is invalid, which is added as a problem. */
export function readOperators(
  reader: VariableReader,
  warnings: ConfigurationProblem[],
): Operators | undefined {
  const privateKeys = reader.read("OPERATOR_PRIVATE_KEY");
  const url = reader.read("OPERATOR_SIGNER_URL");
  const addresses = reader.read("OPERATOR_ADDRESS");
  const isLocal = reader.isSet("OPERATOR_PRIVATE_KEY");
  const isRemote = reader.isSet("OPERATOR_SIGNER_URL");

  if (isLocal && isRemote) {
    reader.refuse("OPERATOR_SIGNER_URL", "is set, and so is OPERATOR_PRIVATE_KEY; keep one of them");
  } else if (!isLocal && !isRemote) {
    reader.refuse("OPERATOR_PRIVATE_KEY", "is needed, or OPERATOR_SIGNER_URL with OPERATOR_ADDRESS");
  } else if (isRemote && !reader.isSet("OPERATOR_ADDRESS")) {
    reader.refuse("OPERATOR_ADDRESS", "is needed with OPERATOR_SIGNER_URL");
  }
  if (privateKeys !== undefined) return { kind: "local", privateKeys };
  if (url === undefined || addresses === undefined) return undefined;
  const danger = "an attacker on the way could have transactions signed";
  warnings.push(...warnOfClearText("OPERATOR_SIGNER_URL", [url], danger));
  return { kind: "remote", url, addresses };
}

/** Reads the recoverer's key, which must differ from the operators' keys. */
export function readRecovererKey(reader: VariableReader, operators: Operators | undefined): Hex | undefined {
  const key = reader.read("RECOVERER_PRIVATE_KEY");
  if (key !== undefined && operators?.kind === "local" && operators.privateKeys.includes(key)) {
    reader.refuse(
      "RECOVERER_PRIVATE_KEY",
      "is an operator's key: one that leaks could then do both; use another",
    );
  }
  return key;
}

/** Reads the sponsor's key, which no other account may use, because its txNonces must be its own. */
function readSponsorKey(
  reader: VariableReader,
  operators: Operators | undefined,
  networks: readonly NetworkConfig[],
): Hex | undefined {
  const key = reader.read("SPONSOR_PRIVATE_KEY");
  if (key === undefined) return undefined;
  const isOperators = operators?.kind === "local" && operators.privateKeys.includes(key);
  if (isOperators || key === reader.read("RECOVERER_PRIVATE_KEY")) {
    reader.refuse("SPONSOR_PRIVATE_KEY", "is the key of another account of the service; use one of its own");
  }
  const isNoneHalfSet = reader.isSet("MAX_GIFT") === reader.isSet("DAILY_GIFTS");
  if (isNoneHalfSet && networks.every(({ gifts }) => gifts === undefined)) {
    reader.refuse("SPONSOR_PRIVATE_KEY", "gives nothing: set MAX_GIFT and DAILY_GIFTS for a network");
  }
  return key;
}

/** Reads the keys that sign for receivers of channels, which must not send transactions. */
function readAuthorizerKeys(reader: VariableReader, operators: Operators | undefined): readonly NetworkKey[] {
  const keys = reader.read("AUTHORIZER_PRIVATE_KEY") ?? [];
  const others = [
    reader.read("RECOVERER_PRIVATE_KEY"),
    reader.read("SPONSOR_PRIVATE_KEY"),
    ...(operators?.kind === "local" ? operators.privateKeys : []),
  ];
  if (keys.some(({ key }) => others.includes(key))) {
    reader.refuse(
      "AUTHORIZER_PRIVATE_KEY",
      "is the key of another account of the service; use one of its own",
    );
  }
  return keys;
}

/** Warns of gift settings that have no effect. */
function warnOfGifts(
  networks: readonly NetworkConfig[],
  sponsorKey: Hex | undefined,
): ConfigurationProblem[] {
  const giving = networks.flatMap(({ name, gifts }) => (gifts === undefined ? [] : [{ name, ...gifts }]));
  if (giving.length === 0) return [];
  const warnings: ConfigurationProblem[] = [];
  const warn = (name: string, problem: string) => warnings.push({ name, problem });
  if (sponsorKey === undefined) {
    warn("SPONSOR_PRIVATE_KEY", "is not set: MAX_GIFT and DAILY_GIFTS give nothing without it");
  }
  if (!networks.some(({ gasSponsoring = [] }) => gasSponsoring.includes("erc20ApprovalGasSponsoring"))) {
    const problem =
      "does not name erc20ApprovalGasSponsoring, for which MAX_GIFT and DAILY_GIFTS are: nothing is given";
    warn("GAS_SPONSORING", problem);
  }
  for (const { name, each, daily } of giving) {
    if (2n * each <= daily) continue;
    const problem = `is more than half of DAILY_GIFTS on ${name}: no organization is given more of a day's gifts than it leaves for the others, so no gift is above half of them`;
    warn("MAX_GIFT", problem);
  }
  return warnings;
}

/** The environment of `deploy`. Contains secrets: never print or log it. */
export type DeployEnvironment = ReturnType<typeof readDeployEnvironment>;

/**
 * Reads the configuration that `deploy` needs for one network.
 *
 * @throws ConfigurationError with all problems
 */
export function readDeployEnvironment(env: Environment, network: KnownNetwork) {
  const { name } = network;
  const reader = createConfigurationReader(env);
  const warnings: ConfigurationProblem[] = [];
  const rpcUrls = readRpcUrls(reader, network, warnings);
  if (!reader.isSet(rpcVariableOf(name)))
    reader.refuse(rpcVariableOf(name), `is needed to deploy on ${name}`);
  const environment = {
    /** In wei per gas. */
    maxFeePerGas: readFeeCaps(reader)[name] ?? network.maxFeePerGas,
    deployerKey: reader.read("DEPLOYER_PRIVATE_KEY"),
    /** The addresses that `serve` would use, and the operators' keys or addresses. */
    contracts: readContracts(reader),
    operatorKeys: reader.read("OPERATOR_PRIVATE_KEY") ?? [],
    operatorAddresses: reader.read("OPERATOR_ADDRESS") ?? [],
    recovererKey: reader.read("RECOVERER_PRIVATE_KEY"),
    warnings,
  };
  if (reader.problems().length > 0 || rpcUrls === undefined) throw new ConfigurationError(reader.problems());
  return freezeDeep({ rpcUrls, ...environment });
}

/** The variables of commands that read the chains of `serve` without its keys. */
export const chainVariables = variablesOf("recover").filter((name) => name !== "RECOVERER_PRIVATE_KEY");

/**
 * Reads the networks of `serve`, or only one of them, without the settings that only `serve` needs: the machine with
 * the recoverer's key does not need the operators' keys. The result contains a secret: never print or log it.
 *
 * @throws ConfigurationError with all problems
 */
export function readRecoverEnvironment(
  env: Environment,
  only: NetworkName | undefined,
  needs: { key: boolean },
) {
  const reader = createConfigurationReader(env);
  const warnings: ConfigurationProblem[] = [];
  const served = readServedNetworks(reader, warnings);
  const networks = served.filter(({ name }) => only === undefined || name === only);
  const databaseUrl = reader.read("DATABASE_URL");
  if (only !== undefined && !reader.isSet(rpcVariableOf(only))) {
    reader.refuse(rpcVariableOf(only), `is needed for ${only}`);
  }
  const recovererKey = needs.key ? reader.read("RECOVERER_PRIVATE_KEY") : undefined;
  if (needs.key && !reader.isSet("RECOVERER_PRIVATE_KEY")) {
    reader.refuse("RECOVERER_PRIVATE_KEY", "is needed to recover; with --dry-run it is not");
  }
  if (recovererKey !== undefined && isPublishedKey(recovererKey)) {
    reader.refuse("RECOVERER_PRIVATE_KEY", "is a published test key: anyone can sign with it");
  }
  if (reader.problems().length > 0) throw new ConfigurationError(reader.problems());
  return { networks, recovererKey, databaseUrl };
}
