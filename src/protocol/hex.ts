import { keccak_256 } from "@noble/hashes/sha3";

/** A 0x-prefixed hexadecimal string. */
export type Hex = `0x${string}`;

/** A 20-byte address as 0x-prefixed hexadecimal, in any casing. Compare with {@link sameAddress}. */
export type Address = Hex;

/** The patterns of hexadecimal texts. */
export const hexForms = {
  address: /^0x[0-9a-fA-F]{40}$/,
  bytes32: /^0x[0-9a-fA-F]{64}$/,
  bytes: /^0x([0-9a-fA-F]{2})*$/,
  quantity: /^0x[0-9a-fA-F]{1,64}$/,
} as const;

/** Returns true if a value is an address, in any casing. */
export function isAddress(value: unknown): value is Address {
  return typeof value === "string" && hexForms.address.test(value);
}

/** Returns true if a value is 32 bytes. */
export function isBytes32(value: unknown): value is Hex {
  return typeof value === "string" && hexForms.bytes32.test(value);
}

/** Returns true if a value is hexadecimal with whole bytes, any number of them. */
export function isBytes(value: unknown): value is Hex {
  return typeof value === "string" && hexForms.bytes.test(value);
}

/** Reads a JSON-RPC quantity of up to 256 bits, with or without leading zeros; otherwise undefined. */
export function readQuantity(value: unknown): bigint | undefined {
  return typeof value === "string" && hexForms.quantity.test(value) ? BigInt(value) : undefined;
}

/** Writes a number as a JSON-RPC quantity: hexadecimal without leading zeros. */
export function quantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`;
}

let hash: (bytes: Uint8Array) => Uint8Array = keccak_256;

/** Makes keccak256 use another implementation from now on; see `chain/signing/recover-signer.ts`. */
export function computeKeccakBy(implementation: (bytes: Uint8Array) => Uint8Array): void {
  hash = implementation;
}

export function keccakBytes(bytes: Uint8Array): Uint8Array {
  return hash(bytes);
}

/** A buffer for short messages: allocating one takes longer than the hash. */
const message = new Uint8Array(1_024);

export function keccak256(bytes: Hex): Hex {
  const size = (bytes.length - 2) / 2;
  return toHex(hash(size > message.length ? toBytes(bytes) : readBytes(bytes, message.subarray(0, size))));
}

/** keccak256 of a text's UTF-8 bytes. */
export function keccak256Text(text: string): Hex {
  return toHex(hash(new TextEncoder().encode(text)));
}

/** Returns true if two addresses are the same, in any casing. */
export function sameAddress(a: string, b: string): boolean {
  return a.length === b.length && a.toLowerCase() === b.toLowerCase();
}

/** An unsigned integer as one 32-byte ABI word, without the 0x. */
export function uintWord(value: bigint): string {
  const digits = value.toString(16);
  return zeros.slice(digits.length) + digits;
}

/** An address as one 32-byte ABI word, without the 0x. */
export function addressWord(address: Address): string {
  return zeros.slice(address.length - 2) + address.slice(2).toLowerCase();
}

/** Sliced to pad a word: `padStart` takes twice as long. */
const zeros = "0".repeat(64);

/** The word at an index of ABI-encoded data, as 64 digits without 0x; undefined beyond the end. */
export function wordAt(data: Hex, index: number): string | undefined {
  const start = 2 + index * 64;
  return data.length >= start + 64 ? data.slice(start, start + 64) : undefined;
}

/** Bytes as ABI words, without the 0x: their length, then the bytes, padded to whole words. */
export function byteWords(bytes: Hex): string {
  const digits = bytes.slice(2);
  return `${uintWord(BigInt(digits.length / 2))}${digits.padEnd(Math.ceil(digits.length / 64) * 64, "0")}`;
}

/** The value of each hexadecimal digit, by its character code. */
const digitValues = new Uint8Array(128);
for (const [value, digit] of [..."0123456789abcdef"].entries()) {
  digitValues[digit.charCodeAt(0)] = value;
  digitValues[digit.toUpperCase().charCodeAt(0)] = value;
}

/** The bytes of a hex string, which must have an even number of digits and nothing else. */
export function toBytes(hex: Hex): Uint8Array {
  return readBytes(hex, new Uint8Array((hex.length - 2) / 2));
}

function readBytes(hex: Hex, bytes: Uint8Array): Uint8Array {
  for (let index = 0, at = 2; index < bytes.length; index++, at += 2) {
    // Several times faster than parseInt, and every verify uses it.
    bytes[index] = ((digitValues[hex.charCodeAt(at)] ?? 0) << 4) | (digitValues[hex.charCodeAt(at + 1)] ?? 0);
  }
  return bytes;
}

/** The two digits of each byte. */
const digitsOf = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes as a lower-case hex string. */
export function toHex(bytes: Uint8Array): Hex {
  let text: Hex = "0x";
  for (const byte of bytes) text += digitsOf[byte];
  return text;
}

/** An address, or the problem with it, as the rest of a sentence that begins with the address's name. */
export type ReadAddress =
  | { address: Address; problem?: undefined }
  | { address?: undefined; problem: string };

/**
 * Reads an address written by a person and returns it with its checksum. In mixed case the checksum must be right
 * (EIP-55): a wrong one means a mistyped digit. The zero address is refused.
 *
 * Addresses in payments are read by `wire-values.ts` instead, which allows any casing, as chains do.
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

/** Writes an address in mixed case with its checksum (EIP-55). */
export function checksumAddress(address: Address): Address {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak256Text(digits).slice(2);
  const cased = Array.from(digits, (digit, index) =>
    Number.parseInt(hash.charAt(index), 16) >= 8 ? digit.toUpperCase() : digit,
  );
  return `0x${cased.join("")}`;
}
