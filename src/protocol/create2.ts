import { type Address, checksumAddress, type Hex, keccak256 } from "./hex.ts";

/**
 * The CREATE2 deployer, at the same address on practically every chain, including anvil. It deploys the init code
 * that follows a 32-byte salt. https://github.com/Arachnid/deterministic-deployment-proxy
 */
export const create2Deployer: Address = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

/** The code that the deployer must have: another contract there could deploy anything at our address. */
export const create2DeployerCode: Hex =
  "0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3";

export const missingDeployerHints: readonly string[] = [
  `The CREATE2 deployer ${create2Deployer} is not on this chain; with it the contract has the same address everywhere.`,
  "Anyone can put it there, as https://github.com/Arachnid/deterministic-deployment-proxy describes.",
  "A local anvil has it, unless it runs with --disable-default-create2-deployer.",
];

/** The address at which the deployer creates a contract (EIP-1014), with checksum. */
export function create2Address(salt: Hex, initCode: Hex): Address {
  const hash = keccak256(`0xff${create2Deployer.slice(2)}${salt.slice(2)}${keccak256(initCode).slice(2)}`);
  return checksumAddress(`0x${hash.slice(26)}`);
}
