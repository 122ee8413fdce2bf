import { type Address, type Hex, hexForms, isAddress, isBytes, isBytes32 } from "./hex.ts";

/*
 * Values of payments, read by hand: the fixtures run in browser pages, where a schema library weighs as much as all the
 * rest. `primitives.ts` has the same forms and sentences as schemas; `wire-values.test.ts` compares the two.
 */

/** The largest value of a Solidity `uint256`. */
export const maxUint256 = 2n ** 256n - 1n;

/**
 * The longest signature that is read, in bytes. A plain one has 65; those of wallets (passkeys, many owners) stay below
 * 2 KiB. Longer ones would make transactions that nodes refuse (128 KiB, with up to 50 payments in one).
 */
export const maxSignatureBytes = 4_096;

/** How many digits the largest `uint256` has. */
const maxDigits = 78;

/** The forms of texts. */
export const forms = { decimal: /^(0|[1-9][0-9]*)$/, ...hexForms } as const;

/** The sentences about malformed values. */
export const faults = {
  object: "must be an object",
  text: "must be a string",
  digits: "must be a string of decimal digits",
  decimal:
    'must be decimal digits without sign, point, space or leading zero; amounts are in the token\'s smallest unit: 0.01 USDC is "10000"',
  tooLarge: "is too large for a uint256: must be below 2^256",
  address: "must be an address: 0x and 40 hexadecimal digits",
  bytes32: "must be 32 bytes: 0x and 64 hexadecimal digits",
  tooLong: `must have at most ${maxSignatureBytes} bytes`,
  bytes: "must be whole bytes of hexadecimal after 0x",
  seconds: "must be a whole number of seconds",
  negative: "must not be negative",
} as const;

/** Reads a decimal string as a `uint256`; null when it is not one (sign, space, leading zero, too large). */
export function parseUint256(text: string): bigint | null {
  if (text.length > maxDigits || !forms.decimal.test(text)) return null;
  const value = BigInt(text);
  return value <= maxUint256 ? value : null;
}

/** A malformed value from outside; the message has its path and what is wrong. */
export class MalformedError extends Error {
  readonly path: string;

  constructor(path: string, fault: string) {
    super(`${path}: ${fault}`);
    this.path = path;
  }
}

/** A value from outside, and its path. */
export type Place = { value: unknown; path: string };

/** @throws MalformedError when it is no object */
export function inObject({ value, path }: Place): (name: string) => Place {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new MalformedError(path, faults.object);
  }
  return (name) => ({ value: Reflect.get(value, name), path: `${path}.${name}` });
}

/** Reads a member that may be missing. */
export function optional<T>(place: Place, read: (place: Place) => T): T | undefined {
  return place.value === undefined ? undefined : read(place);
}

/** @throws MalformedError */
export function readText({ value, path }: Place, fault: string = faults.text): string {
  if (typeof value !== "string") throw new MalformedError(path, fault);
  return value;
}

/** @throws MalformedError */
export function readUint256(place: Place): bigint {
  const text = readText(place, faults.digits);
  const value = parseUint256(text);
  if (value !== null) return value;
  throw new MalformedError(place.path, forms.decimal.test(text) ? faults.tooLarge : faults.decimal);
}

/** The problem with what is to be an address: how long it is, where it is one otherwise. */
export function addressFault(text: string): string {
  const digits = /^0x([0-9a-f]*)$/i.exec(text)?.[1]?.length;
  return digits === undefined ? faults.address : `${faults.address}, and has ${digits}`;
}

/** @throws MalformedError */
export function readWireAddress(place: Place): Address {
  const text = readText(place);
  if (!isAddress(text)) throw new MalformedError(place.path, addressFault(text));
  return text;
}

/** @throws MalformedError */
export function readBytes32(place: Place): Hex {
  const text = readText(place);
  if (!isBytes32(text)) throw new MalformedError(place.path, faults.bytes32);
  return text;
}

/** @throws MalformedError */
export function readSignature(place: Place): Hex {
  const text = readText(place);
  if (text.length > 2 + 2 * maxSignatureBytes) throw new MalformedError(place.path, faults.tooLong);
  if (!isBytes(text)) throw new MalformedError(place.path, faults.bytes);
  return text;
}

/** @throws MalformedError */
export function readSeconds({ value, path }: Place): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) {
    throw new MalformedError(path, faults.seconds);
  }
  if (value < 0) throw new MalformedError(path, faults.negative);
  return value;
}

/** A property of parsed JSON, and never one that an object inherits; undefined of what is no object. */
export function propertyOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}
