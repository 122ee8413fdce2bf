import { type Hex, isBytes } from "./hex.ts";
import { propertyOf } from "./wire-values.ts";

/**
 * The extension `builder-code` of the public protocol: the codes of those involved in a payment are appended to the
 * calldata of the settling transaction, as an ERC-8021 suffix with schema 2.
 *
 * @see https://eips.ethereum.org/EIPS/eip-8021
 */
export const builderCodeExtension = "builder-code";

/** The builder codes of a payment or a transaction: `a`, `w` and `s` in ERC-8021. */
export type BuilderCodes = {
  /** The shop's code. */
  app?: string | undefined;
  /** The facilitator's code. */
  wallet?: string | undefined;
  /** The codes of the software that buyer and shop use. */
  services?: readonly string[] | undefined;
};

/** The form of a code. */
export const builderCodePattern = /^[a-z0-9_]{1,32}$/;

/** The most service codes: five from the buyer and five from the shop. */
const mostServices = 10;

/** The end of the suffix: the schema, and the marker of ERC-8021. */
const ending = `02${"8021".repeat(8)}`;

const isCode = (value: unknown): value is string =>
  typeof value === "string" && builderCodePattern.test(value);

/**
 * Reads the codes in a payment; undefined if there are none. Like public facilitators, it leaves out malformed codes,
 * and `a` in version 1, where shops do not compare it with their own.
 */
export function readClaimedCodes(paymentPayload: unknown, x402Version: 1 | 2): BuilderCodes | undefined {
  const extension = propertyOf(propertyOf(paymentPayload, "extensions"), builderCodeExtension);
  const info = propertyOf(extension, "info");
  const [a, s] = [propertyOf(info, "a"), propertyOf(info, "s")];
  const app = x402Version === 2 && isCode(a) ? a : undefined;
  const services = [s].flat().filter(isCode).slice(0, mostServices);
  return app === undefined && services.length === 0 ? undefined : { app, services };
}

/**
 * Merges the codes of payments that share a transaction, which must have the same app: keeps the first ten services.
 * Undefined if none has a code.
 */
export function mergeCodes(payments: readonly (BuilderCodes | undefined)[]): BuilderCodes | undefined {
  const [first] = payments;
  const services = new Set(payments.flatMap((codes) => codes?.services ?? []));
  if (first?.app === undefined && first?.wallet === undefined && services.size === 0) return undefined;
  return { app: first?.app, wallet: first?.wallet, services: [...services].slice(0, mostServices) };
}

/** Appends codes to calldata; contracts ignore them. */
export function appendCodes(data: Hex, codes: BuilderCodes | undefined): Hex {
  if (codes === undefined) return data;
  const { app, wallet, services = [] } = codes;
  const members = [
    app === undefined ? "" : text("a") + text(app),
    wallet === undefined ? "" : text("w") + text(wallet),
    services.length === 0 ? "" : text("s") + head(arrays, services.length) + services.map(text).join(""),
  ].filter((member) => member !== "");
  if (members.length === 0) return data;
  const map = head(maps, members.length) + members.join("");
  return `${data}${map}${(map.length / 2).toString(16).padStart(4, "0")}${ending}`;
}

/** Reads the codes at the end of any transaction's calldata; undefined if there are none or they cannot be read. */
export function readCodes(data: Hex): BuilderCodes | undefined {
  const digits = data.slice(2).toLowerCase();
  const end = digits.length - ending.length - 4;
  if (!isBytes(data) || end < 0 || !digits.endsWith(ending)) return undefined;
  const start = end - 2 * Number.parseInt(digits.slice(end, end + 4), 16);
  const map = start < 0 ? undefined : readItem(digits.slice(start, end), 0);
  if (!(map?.value instanceof Map) || map.next !== end - start) return undefined;
  const [app, wallet, services] = [map.value.get("a"), map.value.get("w"), map.value.get("s")];
  return {
    ...(isCode(app) && { app }),
    ...(isCode(wallet) && { wallet }),
    ...(Array.isArray(services) && { services: services.filter(isCode) }),
  };
}

/*
 * CBOR as far as the suffix needs it: text, arrays, maps, and numbers (other facilitators' counts, under the key `m`).
 */

const [numbers, texts, arrays, maps] = [0, 3, 4, 5];

/** The maximum nesting: calldata of other people's transactions may contain anything. */
const mostDepth = 4;

const hexOfByte = (byte: number) => byte.toString(16).padStart(2, "0");

function head(type: number, length: number): string {
  return length < 24 ? hexOfByte((type << 5) | length) : hexOfByte((type << 5) | 24) + hexOfByte(length);
}

function text(value: string): string {
  return head(texts, value.length) + [...value].map((one) => hexOfByte(one.charCodeAt(0))).join("");
}

type Item = { value: unknown; next: number };

/** Reads the item at a digit, and the position of the next one; undefined if its type is not supported. */
function readItem(digits: string, at: number, depth = 0): Item | undefined {
  const byteAt = (place: number) => Number.parseInt(digits.slice(place, place + 2), 16);
  const first = byteAt(at);
  const [type, short] = [first >> 5, first & 31];
  const bytes = short < 24 ? 0 : 2 ** (short - 24);
  let next = at + 2 + 2 * bytes;
  if (Number.isNaN(first) || bytes > 4 || next > digits.length || depth > mostDepth) return undefined;
  const length = bytes === 0 ? short : Number.parseInt(digits.slice(at + 2, next), 16);
  if (type === numbers) return { value: length, next };
  if (type === texts) {
    const end = next + 2 * length;
    if (end > digits.length) return undefined;
    let value = "";
    for (; next < end; next += 2) value += String.fromCharCode(byteAt(next));
    return { value, next };
  }
  if (type !== arrays && type !== maps) return undefined;
  const values: unknown[] = [];
  for (let left = type === maps ? 2 * length : length; left > 0; left--) {
    const item = readItem(digits, next, depth + 1);
    if (item === undefined) return undefined;
    values.push(item.value);
    next = item.next;
  }
  if (type === arrays) return { value: values, next };
  const pairs = values.flatMap((key, index) => (index % 2 === 0 ? [[key, values[index + 1]] as const] : []));
  return { value: new Map(pairs), next };
}
