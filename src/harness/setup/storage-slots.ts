import { type Address, addressWord, type Hex, keccak256, uintWord } from "../../protocol/hex.ts";

/** The slot of an account in a `mapping(address => …)` in Solidity's layout: of its value, or of its nested mapping. */
export function accountSlot(account: Address, mappingSlot: bigint): Hex {
  return keccak256(`0x${addressWord(account)}${uintWord(mappingSlot)}`);
}

/** The slot of a key (64 hex digits) in a nested mapping at slot `outer`. */
export function slotWithin(outer: Hex, key: string): bigint {
  return BigInt(keccak256(`0x${key}${outer.slice(2)}`));
}

/** The slot of an account and key in a `mapping(address => mapping(bytes32 => …))`. */
export function nestedSlot(account: Address, key: Hex, mappingSlot: bigint): bigint {
  return slotWithin(accountSlot(account, mappingSlot), key.slice(2));
}
