import { type Address, isAddress, keccak256Text, keccakBytes, toHex } from "./hex.ts";

/** An address that was read, or what is wrong with it, as the rest of a sentence that begins with its name. */
export type ReadAddress =
  | { address: Address; problem?: undefined }
  | { address?: undefined; problem: string };

/**
 * Reads an address that a person wrote, and gives it with its checksum. In mixed case the checksum must be right
 * (EIP-55): a wrong one means that a digit was mistyped. The zero address is refused.
 *
 * Addresses in payments are read with the schema of the wire, which allows any casing, as chains do.
 */
export function readAddress(text: string): ReadAddress {
  if (!isAddress(text)) return { problem: "is not an address: 0x and 40 hexadecimal digits" };
  const address = checksumAddress(text);
  const isMixedCase = /[a-f]/.test(text.slice(2)) && /[A-F]/.test(text);
  if (isMixedCase && text !== address) {
    return { problem: "has a wrong checksum (EIP-55): a digit may be mistyped" };
  }
  return BigInt(address) === 0n ? { problem: "is the zero address" } : { address };
}

/** The address of an account from its uncompressed public key of 65 bytes. */
export function addressOfPublicKey(publicKey: Uint8Array): Address {
  return checksumAddress(toHex(keccakBytes(publicKey.subarray(1)).subarray(12)));
}

/** An address in the mixed case that carries its checksum (EIP-55). */
export function checksumAddress(address: Address): Address {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak256Text(digits).slice(2);
  const cased = Array.from(digits, (digit, index) =>
    Number.parseInt(hash.charAt(index), 16) >= 8 ? digit.toUpperCase() : digit,
  );
  return `0x${cased.join("")}`;
}
