import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName, NetworkTier } from "../protocol/networks.ts";
import { isPublishedKey } from "../published/accounts.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import type { KnownNetwork } from "./known-networks.ts";
import type { NetworkConfig } from "./serve-config.ts";
import { readContracts, readFeeCaps, readRpcUrls, readServedNetworks } from "./served-networks.ts";
import { createConfigurationReader, type Environment, freezeDeep } from "./variable-reader.ts";
import { rpcVariableOf, variablesOf } from "./variables.ts";

/** What `deploy` reads from the environment. Holds secrets: never print or log it. */
export type DeployEnvironment = {
  readonly rpcUrls: readonly [string, ...string[]];
  /** In wei per gas. */
  readonly maxFeePerGas: bigint;
  readonly deployerKey: Hex | undefined;
  /** The addresses that `serve` would use. */
  readonly contracts: Readonly<Partial<Record<NetworkTier, Address>>>;
  /** The operators that `serve` would use: their keys, or else their addresses. */
  readonly operatorKeys: readonly Hex[];
  readonly operatorAddresses: readonly Address[];
  readonly recovererKey: Hex | undefined;
  readonly warnings: readonly ConfigurationProblem[];
};

/**
 * Reads what `deploy` needs to know about one network.
 *
 * @throws ConfigurationError with everything that is wrong with it
 */
export function readDeployEnvironment(env: Environment, network: KnownNetwork): DeployEnvironment {
  const { name } = network;
  const reader = createConfigurationReader(env);
  const warnings: ConfigurationProblem[] = [];
  const rpcUrls = readRpcUrls(reader, network, warnings);
  if (!reader.isSet(rpcVariableOf(name)))
    reader.refuse(rpcVariableOf(name), `is needed to deploy on ${name}`);
  const environment = {
    maxFeePerGas: readFeeCaps(reader)[name] ?? network.maxFeePerGas,
    deployerKey: reader.read("DEPLOYER_PRIVATE_KEY"),
    contracts: readContracts(reader),
    operatorKeys: reader.read("OPERATOR_PRIVATE_KEY") ?? [],
    operatorAddresses: reader.read("OPERATOR_ADDRESS") ?? [],
    recovererKey: reader.read("RECOVERER_PRIVATE_KEY"),
    warnings,
  };
  if (reader.problems().length > 0 || rpcUrls === undefined) throw new ConfigurationError(reader.problems());
  return freezeDeep({ rpcUrls, ...environment });
}

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
