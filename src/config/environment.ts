import { ConfigurationError, type ConfigurationProblem } from "../errors.ts";
import { defaultDatabaseUrl, readDatabaseUrl } from "./database-url.ts";
import { freezeDeep } from "./freeze.ts";
import type { NetworkConfig } from "./network-config.ts";
import { readOperators, readRecovererKey } from "./operators.ts";
import { readPepper } from "./pepper.ts";
import { readRate } from "./rate.ts";
import { logLevels, type ServeConfig } from "./serve-config.ts";
import { readServedNetworks } from "./served-networks.ts";
import { readTrustProxy } from "./trust-proxy.ts";
import { isLoopbackHost, readHost, readOneOf, readSwitch, readWholeNumber } from "./values.ts";
import { createVariableReader, type Environment, type VariableReader } from "./variable-reader.ts";

/** How long a settle of protocol version 2 waits unless told otherwise; version 1 waits longer. */
const shortestUsualWaitMs = 45_000;

/**
 * A shop that has 2,000 buyers at once verifies and settles for each of them. Whoever has no good key needs few
 * requests, but many callers may share an address.
 */
const usualRates = {
  key: { perSecond: 200, burst: 5_000 },
  address: { perSecond: 20, burst: 5_000 },
};

/**
 * Reads the configuration of `serve` from the environment. A variable that is set to nothing is not set.
 *
 * @throws ConfigurationError with everything that is wrong with it. No message repeats a secret or an RPC URL.
 */
export function readEnvironment(env: Environment): ServeConfig {
  const reader = createVariableReader(env);
  const warnings: ConfigurationProblem[] = [];
  const networks = readServedNetworks(reader, warnings);
  const operators = readOperators(reader, warnings);
  const recovererKey = readRecovererKey(reader, operators);
  const apiKeyPepper = reader.read("API_KEY_PEPPER", readPepper);
  if (!reader.isSet("API_KEY_PEPPER")) reader.refuse("API_KEY_PEPPER", "is needed");
  const settleWaitMs = reader.read("SETTLE_WAIT_MS", readWholeNumber(100, 600_000));
  const host = reader.read("HOST", readHost) ?? "127.0.0.1";
  const config = {
    networks,
    recovererKey,
    databaseUrl: reader.read("DATABASE_URL", readDatabaseUrl) ?? defaultDatabaseUrl,
    host,
    port: reader.read("PORT", readWholeNumber(0, 65_535)) ?? 4402,
    trustProxy: reader.read("TRUST_PROXY", readTrustProxy) ?? false,
    rateLimits: {
      key: reader.read("RATE_LIMIT_KEY", readRate) ?? usualRates.key,
      address: reader.read("RATE_LIMIT_ADDRESS", readRate) ?? usualRates.address,
    },
    maxSettles: reader.read("MAX_SETTLES", readWholeNumber(1, 100_000)) ?? 4_000,
    metrics: readMetrics(reader),
    settleWaitMs,
    anonymousVerify: reader.read("ANONYMOUS_VERIFY", readSwitch) ?? false,
    logLevel: reader.read("LOG_LEVEL", readOneOf(logLevels)) ?? "info",
    warnings: [...warnings, ...warnOfProxies(reader, host), ...warnOfLongWaits(networks, settleWaitMs)],
  };
  if (reader.problems().length > 0 || operators === undefined || apiKeyPepper === undefined) {
    throw new ConfigurationError(reader.problems());
  }
  return freezeDeep({ ...config, operators, apiKeyPepper });
}

function readMetrics(reader: VariableReader): ServeConfig["metrics"] {
  const port = reader.read("METRICS_PORT", readWholeNumber(0, 65_535));
  const host = reader.read("METRICS_HOST", readHost) ?? "127.0.0.1";
  if (reader.isSet("METRICS_HOST") && !reader.isSet("METRICS_PORT")) {
    reader.refuse("METRICS_PORT", "is needed with METRICS_HOST");
  }
  return port === undefined ? undefined : { host, port };
}

/** Rate limits count by address: whether there is a proxy in front cannot be guessed, nor put off. */
function warnOfProxies(reader: VariableReader, host: string): ConfigurationProblem[] {
  if (reader.isSet("TRUST_PROXY") || isLoopbackHost(host)) return [];
  const problem =
    "is not set: behind a proxy, all callers without a good API key count as one address; set it to false where there is none";
  return [{ name: "TRUST_PROXY", problem, example: "false" }];
}

function warnOfLongWaits(
  networks: readonly NetworkConfig[],
  settleWaitMs = shortestUsualWaitMs,
): ConfigurationProblem[] {
  return networks.flatMap(({ name, confirmations, blockTimeMs }) => {
    const takesMs = confirmations * blockTimeMs;
    if (takesMs < settleWaitMs) return [];
    const problem = `${confirmations} blocks of ${name} take some ${takesMs / 1000} s, longer than a settle waits: it would never answer at once`;
    return [{ name: "CONFIRMATIONS", problem }];
  });
}
