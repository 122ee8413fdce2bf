import { formatAmount, type TokenUnits } from "../../../protocol/token-units.ts";
import type { ClockTime } from "./snippets.ts";

/** A time of day with milliseconds. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function shorten(hex: string | null): string {
  if (hex === null) return "";
  return hex.length > 16 ? `${hex.slice(0, 8)}…${hex.slice(-4)}` : hex;
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "";
  return ms < 10
    ? `${ms.toFixed(1)} ms`
    : ms < 10_000
      ? `${Math.round(ms)} ms`
      : `${(ms / 1000).toFixed(1)} s`;
}

/** Unix seconds for a person, and how far they are from the time of a request. */
export function formatSeconds(seconds: string, requested: ClockTime): string {
  const value = Number(seconds);
  if (value === 0) return "0 (always)";
  if (!Number.isSafeInteger(value) || value > 8_640_000_000_000) return seconds;
  const ahead = value - requested.seconds;
  const distance = `${Math.abs(ahead)} s ${ahead < 0 ? "before" : "after"} ${whoseTime[requested.clock]}`;
  return `${seconds} (${formatDate(value)}, ${distance})`;
}

const whoseTime: Readonly<Record<ClockTime["clock"], string>> = {
  chain: "the chain's time at the request",
  machine: "the request, by this machine's clock",
};

/** The date of unix seconds. */
export function formatDate(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000", "");
}

/** An amount in the token's smallest unit, and what that is in whole tokens, where the token is known. */
export function formatBoth(amount: string, token: TokenUnits | null): string {
  return token === null ? amount : `${amount} (${formatAmount(amount, token)})`;
}

/** A price of gas in wei, for a person; undefined where it is not known. */
export function formatGwei(wei: string | number | boolean | undefined): string | undefined {
  return wei === undefined ? undefined : `${Number(wei) / 1e9} gwei`;
}

/** JSON for a person; the text as it is where it is none. */
export function indentJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
