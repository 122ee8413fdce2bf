import { type Address, addressWord, type Hex, keccak256, uintWord } from "../../protocol/hex.ts";

/** Where a contract keeps `mapping(address => …)`, in Solidity's layout: the value of an account, or its own mapping. */
export function accountSlot(account: Address, mappingSlot: bigint): Hex {
  return keccak256(`0x${addressWord(account)}${uintWord(mappingSlot)}`);
}

/** Where the value of a key is, 64 hexadecimal digits, in such a mapping of an account's own. */
export function slotWithin(outer: Hex, key: string): bigint {
  return BigInt(keccak256(`0x${key}${outer.slice(2)}`));
}

/** Where a contract keeps `mapping(address => mapping(bytes32 => …))`. */
export function nestedSlot(account: Address, key: Hex, mappingSlot: bigint): bigint {
  return slotWithin(accountSlot(account, mappingSlot), key.slice(2));
}
