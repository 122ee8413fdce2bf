import { addressWord, type Hex, keccak256, keccak256Text, uintWord } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";

const domainTypehash = keccak256Text(
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
).slice(2);

/** The EIP-712 domain separator of an asset on a chain, as returned by the token's `DOMAIN_SEPARATOR()`. */
export function domainSeparator(asset: Pick<Asset, "name" | "version" | "address">, chainId: number): Hex {
  return keccak256(
    `0x${domainTypehash}${keccak256Text(asset.name).slice(2)}${keccak256Text(asset.version).slice(2)}${uintWord(BigInt(chainId))}${addressWord(asset.address)}`,
  );
}

/** The EIP-712 digest of a message hash under a domain separator. */
export function digestUnder(separator: Hex, messageHash: Hex): Hex {
  return keccak256(`0x1901${separator.slice(2)}${messageHash.slice(2)}`);
}
