import { formatAmount, type TokenUnits } from "../../protocol/token-units.ts";

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

/** Unix seconds for a person, and how far they are from a request that came at the given unix milliseconds. */
export function formatSeconds(seconds: string, requestedAt: number): string {
  const value = Number(seconds);
  if (value === 0) return "0 (always)";
  if (!Number.isSafeInteger(value) || value > 8_640_000_000_000) return seconds;
  const ahead = value - Math.floor(requestedAt / 1000);
  const distance = `${Math.abs(ahead)} s ${ahead < 0 ? "before" : "after"} the request`;
  return `${seconds} (${new Date(value * 1000).toISOString().replace(".000", "")}, ${distance})`;
}

/** An amount in the token's smallest unit, and what that is in whole tokens, where the token is known. */
export function formatBoth(amount: string, token: TokenUnits | null): string {
  return token === null ? amount : `${amount} (${formatAmount(amount, token)})`;
}
