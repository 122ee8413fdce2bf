import { type Address, type Hex, hexForms, isAddress, isBytes, isBytes32 } from "./hex.ts";

/*
 * Values in payments, read by hand: the fixtures run in browsers, where a schema library would weigh as much as all
 * the rest. `primitives.ts` has the same formats and messages as schemas; `wire-values.test.ts` compares the two.
 */

/** The largest value of a Solidity `uint256`. */
export const maxUint256 = 2n ** 256n - 1n;

/**
 * The longest signature that is read, in bytes. A plain one has 65; those of wallets (passkeys, many owners) stay
 * below 2 KiB. Longer ones would make transactions that nodes refuse (128 KiB, with up to 50 payments each).
 */
export const maxSignatureBytes = 4_096;

/** Stands in for an address that cannot be read. */
export const zeroAddress: Address = "0x0000000000000000000000000000000000000000";

/** The number of digits of the largest `uint256`. */
const maxDigits = 78;

/** The patterns of texts. */
export const forms = { decimal: /^(0|[1-9][0-9]*)$/, ...hexForms } as const;

/** The messages about malformed values. */
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

/** Reads a decimal string as a `uint256`; null if it is not one (sign, space, leading zero, too large). */
export function parseUint256(text: string): bigint | null {
  if (text.length > maxDigits || !forms.decimal.test(text)) return null;
  const value = BigInt(text);
  return value <= maxUint256 ? value : null;
}

/** Called if a member is malformed. It throws to stop; if it returns, reading continues with another value. */
export type OnMalformed = (at: string, problem: string) => void;

/** An object from outside, whose members are read by name, and its path. */
export type Part = {
  readonly members: Readonly<Record<string, unknown>>;
  readonly path: string;
  readonly onMalformed: OnMalformed;
};

/** Reads an object. If it is not one, its members are not reported. */
export function readPart(value: unknown, path: string, onMalformed: OnMalformed): Part {
  if (isRecord(value)) return { members: value, path, onMalformed };
  onMalformed(path, faults.object);
  return { members: {}, path, onMalformed() {} };
}

/** Reads a member that is an object. */
export function readInner({ members, path, onMalformed }: Part, name: string): Part {
  return readPart(members[name], `${path}.${name}`, onMalformed);
}

/** Reads a member that may be missing. */
export function optional<T>(part: Part, name: string, read: (part: Part, name: string) => T): T | undefined {
  return part.members[name] === undefined ? undefined : read(part, name);
}

function refuse({ path, onMalformed }: Part, name: string, problem: string): void {
  onMalformed(`${path}.${name}`, problem);
}

export function readText(part: Part, name: string): string {
  const text = part.members[name];
  if (typeof text === "string") return text;
  refuse(part, name, faults.text);
  return "";
}

export function readUint256(part: Part, name: string): bigint {
  const text = part.members[name];
  const value = typeof text === "string" ? parseUint256(text) : null;
  if (value !== null) return value;
  if (typeof text !== "string") refuse(part, name, faults.digits);
  else refuse(part, name, forms.decimal.test(text) ? faults.tooLarge : faults.decimal);
  return 0n;
}

/** The problem with a text that should be an address; names its length if only that is wrong. */
export function addressFault(text: string): string {
  const digits = /^0x([0-9a-fA-F]*)$/.exec(text)?.[1]?.length;
  return digits === undefined ? faults.address : `${faults.address}, and has ${digits}`;
}

export function readWireAddress(part: Part, name: string): Address {
  const text = part.members[name];
  if (isAddress(text)) return text;
  refuse(part, name, typeof text === "string" ? addressFault(text) : faults.text);
  return zeroAddress;
}

export function readBytes32(part: Part, name: string): Hex {
  const text = part.members[name];
  if (isBytes32(text)) return text;
  refuse(part, name, typeof text === "string" ? faults.bytes32 : faults.text);
  return `0x${"00".repeat(32)}`;
}

export function readSignature(part: Part, name: string): Hex {
  const text = part.members[name];
  const isTooLong = typeof text === "string" && text.length > 2 + 2 * maxSignatureBytes;
  if (!isTooLong && isBytes(text)) return text;
  const problem = isTooLong ? faults.tooLong : faults.bytes;
  refuse(part, name, typeof text === "string" ? problem : faults.text);
  return "0x";
}

export function readSeconds(part: Part, name: string): number {
  const seconds = part.members[name];
  const isWhole = typeof seconds === "number" && Number.isSafeInteger(seconds);
  if (isWhole && seconds >= 0) return seconds;
  refuse(part, name, isWhole ? faults.negative : faults.seconds);
  return 0;
}

/** True if a JSON value is an object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An own property of a JSON object, never an inherited one; undefined if the value is not an object. */
export function propertyOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}
