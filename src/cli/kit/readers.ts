import { InvalidValue, readOneOf } from "../../config/values.ts";
import { type NetworkName, networkNames } from "../../protocol/networks.ts";
import { parseUint256 } from "../../protocol/primitives.ts";
import type { Option } from "./options.ts";

/** A flag: off unless it is given. */
export function flag(describe: string): Option<boolean> {
  return { describe, read: () => true, fallback: false };
}

/** One network by its v1 name. */
export const readNetwork: (text: string) => NetworkName = readOneOf(networkNames);

/** A comma-separated list of networks, each at most once. */
export function readNetworks(text: string): readonly NetworkName[] {
  const names = text.split(",").map((name) => readNetwork(name.trim()));
  if (new Set(names).size < names.length) throw new InvalidValue("names a network twice");
  return names;
}

/** An amount in the asset's smallest unit. */
export function readAmount(text: string): bigint {
  const value = parseUint256(text);
  if (value === null && /^[1-9][0-9]{77,}$/.test(text))
    throw new InvalidValue(`"${text}" is above 2^256 - 1`);
  if (value === null || value === 0n) {
    throw new InvalidValue(`"${text}" is not an amount in the asset's smallest unit (1 USDC is 1000000)`);
  }
  return value;
}

/** A moment: an ISO 8601 date, or date and time; UTC where it names no zone. In unix milliseconds. */
export function readMoment(text: string): number {
  const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.exec(text);
  const time =
    iso === null ? Number.NaN : Date.parse(iso[1] !== undefined && iso[4] === undefined ? `${text}Z` : text);
  if (Number.isNaN(time)) throw new InvalidValue(`"${text}" is not a time: 2026-11-20, 2026-11-20T10:00:00Z`);
  return time;
}

/** Where an `up` listens. The facilitator's own URL, which `up` prints and which ends in /v1, means the same. */
export function readUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new InvalidValue(`"${text}" is not an http URL`);
  return text.replace(/(\/v1)?\/*$/, "");
}
