import type { Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { isPublishedKey } from "../published/accounts.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import type { NetworkConfig } from "./network-config.ts";
import { readServedNetworks } from "./served-networks.ts";
import { createConfigurationReader, type Environment } from "./variable-reader.ts";
import { rpcVariableOf, variablesOf } from "./variables.ts";

/** What `recover` and `stranded` read of the environment of `serve`. Holds a secret: never print or log it. */
export type RecoverEnvironment = {
  networks: readonly NetworkConfig[];
  recovererKey: Hex | undefined;
  databaseUrl: string;
};

/** What commands read that ask the chains of `serve`, without its keys. */
export const chainVariables = variablesOf("recover").filter((name) => name !== "RECOVERER_PRIVATE_KEY");

/**
 * Reads the networks that `serve` serves, or the given one of them, without what only `serve` needs: the machine
 * with the recoverer's key need not have the operators'.
 *
 * @throws ConfigurationError with everything that is wrong
 */
export function readRecoverEnvironment(
  env: Environment,
  only: NetworkName | undefined,
  needs: { key: boolean },
): RecoverEnvironment {
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
