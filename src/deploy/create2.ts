import { getCreate2Address } from "viem/utils";
import type { Address, Hex } from "../protocol/hex.ts";

/**
 * The CREATE2 deployer that stands at the same address on practically every chain, because it was deployed by a
 * transaction that anybody can send: https://github.com/Arachnid/deterministic-deployment-proxy. It deploys the init
 * code that follows a salt of 32 bytes.
 */
export const create2Deployer: Address = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

/** What must stand there: another contract could put anything at our address, or nothing. */
export const create2DeployerCode: Hex =
  "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3";

/** What to do where the deployer is missing. */
export const missingDeployerHints: readonly string[] = [
  `The CREATE2 deployer ${create2Deployer} is not on this chain; with it the contract has the same address everywhere.`,
  "Anybody can put it there, as https://github.com/Arachnid/deterministic-deployment-proxy describes.",
  "A local anvil has it, unless it runs with --disable-default-create2-deployer.",
];

/** Where the deployer puts a contract (EIP-1014). */
export function create2Address(salt: Hex, initCode: Hex): Address {
  return getCreate2Address({ from: create2Deployer, salt, bytecode: initCode });
}
