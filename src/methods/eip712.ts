import { type Hex, keccak256 } from "../protocol/hex.ts";

/** The EIP-712 digest of a message, by its hash, under a domain. */
export function digestUnder(separator: Hex, messageHash: Hex): Hex {
  return keccak256(`0x1901${separator.slice(2)}${messageHash.slice(2)}`);
}
