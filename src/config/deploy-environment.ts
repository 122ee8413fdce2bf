import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkTier } from "../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem } from "../util/errors.ts";
import { freezeDeep } from "./freeze.ts";
import type { KnownNetwork } from "./known-networks.ts";
import { readContracts, readFeeCaps, readRpcUrls } from "./served-networks.ts";
import { createConfigurationReader, type Environment } from "./variable-reader.ts";
import { rpcVariableOf } from "./variables.ts";

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
