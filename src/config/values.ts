import { isIP } from "node:net";
import type { ConfigurationProblem } from "../errors.ts";
import { readAddress as parseAddress } from "../protocol/address.ts";
import type { Address, Hex } from "../protocol/hex.ts";

/*
 * Readers of single values. Each takes the text of a variable, trimmed and not empty, and throws {@link Unusable} when
 * it is not what it should be. What they say never repeats a text that may be a secret, whichever variable it is in:
 * keys do get pasted into the wrong line.
 */

/** What is wrong with a value, in words that can be shown to anybody. */
export class InvalidValue extends Error {
  override readonly name = "Unusable";
}

/** Longer than any name or number that is asked for, shorter than any key. */
const longestQuoted = 24;

/** A text for a message: as it is when it is short, else only its length. */
export function quote(text: string): string {
  return text.length <= longestQuoted ? `"${text}"` : `a text of ${text.length} characters`;
}

/** 1st, 2nd, 3rd, … for things counted from 0. */
export function ordinal(index: number): string {
  const number = index + 1;
  const ending =
    number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}

export function readWholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most)) {
      throw new InvalidValue(`${quote(text)} is not a whole number from ${least} to ${most}`);
    }
    return value;
  };
}

export function readOneOf<const T extends string>(words: readonly T[]): (text: string) => T {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw new InvalidValue(`${quote(text)} is not one of ${words.join(", ")}`);
    return word;
  };
}

/** `true` or `false`. */
export function readSwitch(text: string): boolean {
  return readOneOf(["true", "false"])(text) === "true";
}

/** An address to listen on. */
export function readHost(text: string): string {
  if (isIP(text) === 0 && text !== "localhost") throw new InvalidValue(`${quote(text)} is not an IP address`);
  return text;
}

const gweiPattern = /^(\d{1,6})(?:\.(\d{1,9}))?$/;

/** A number of gwei, with up to nine decimals, as wei. */
export function readGwei(text: string): bigint {
  const [, whole = "", fraction = ""] = gweiPattern.exec(text) ?? [];
  const wei = whole === "" ? 0n : BigInt(whole + fraction.padEnd(9, "0"));
  if (wei === 0n)
    throw new InvalidValue(`${quote(text)} is not a number of gwei above 0 and below 1,000,000`);
  return wei;
}

/** An address, given back with its checksum (EIP-55), which must be right where the text is in mixed case. */
export function readAddress(text: string): Address {
  const { address, problem } = parseAddress(text);
  if (problem !== undefined) throw new InvalidValue(problem);
  return address;
}

/** The order of secp256k1: private keys are below it. */
const secp256k1Order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** A private key, with or without 0x, given back in lower case with it. */
export function readPrivateKey(text: string): Hex {
  const digits = /^(?:0x)?([0-9a-fA-F]{64})$/.exec(text)?.[1];
  if (digits === undefined) throw new InvalidValue("is not a private key");
  const key: Hex = `0x${digits.toLowerCase()}`;
  if (BigInt(key) === 0n || BigInt(key) >= secp256k1Order) {
    throw new InvalidValue("is not a private key: not above zero and below the order of secp256k1");
  }
  return key;
}

/** A URL over http or https. */
export function readHttpUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const webSocket = /^wss?:/i.test(text) ? "; WebSockets are not supported" : "";
    throw new InvalidValue(`is not a URL that begins with https:// or http://${webSocket}`);
  }
  return text;
}

/** Whether what is sent to a URL stays on this machine. */
export function isLoopbackUrl(text: string): boolean {
  return isLoopbackHost(URL.parse(text)?.hostname.replace(/^\[|\]$/g, "") ?? "");
}

/** Whether what listens on a host can be reached from this machine alone. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Several values separated by commas, none of them twice. `what` names one in messages: "key". */
export function readList<T>(what: string, read: (text: string) => T): (text: string) => readonly [T, ...T[]] {
  return (text) => {
    const values = text.split(",").map((part, index, { length }): T => {
      const where = length === 1 ? "" : `the ${ordinal(index)} ${what} `;
      if (part.trim() === "") throw new InvalidValue(`the ${ordinal(index)} ${what} is empty`);
      try {
        return read(part.trim());
      } catch (error) {
        throw error instanceof InvalidValue ? new InvalidValue(`${where}${error.message}`) : error;
      }
    });
    for (const [index, value] of values.entries()) {
      const first = values.indexOf(value);
      if (first < index)
        throw new InvalidValue(`the ${ordinal(index)} ${what} is the same as the ${ordinal(first)}`);
    }
    const [first, ...others] = values;
    if (first === undefined) throw new InvalidValue(`names no ${what}`);
    return [first, ...others];
  };
}

/** A warning about each URL that sends in clear what somebody on the way could read or change. */
export function warnOfClearText(
  name: string,
  urls: readonly string[],
  danger: string,
): ConfigurationProblem[] {
  return urls.flatMap((url, index) =>
    /^http:/i.test(url) && !isLoopbackUrl(url)
      ? [
          {
            name,
            problem: `the ${ordinal(index)} URL is http:// to another machine: ${danger}`,
            example: "https://…",
          },
        ]
      : [],
  );
}
