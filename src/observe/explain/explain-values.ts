import { type Finding, finding } from "../../protocol/mistakes.ts";
import { formatMoment } from "../../protocol/moments.ts";
import { expiryMarginSeconds, usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import type { PaymentWords } from "../../protocol/signed-payment.ts";
import { parseAmount, type TokenUnits } from "../../protocol/token-units.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { showValue } from "../../util/text.ts";
import { explainTimeout } from "./explain-exchange.ts";

/* Explains single values of a payment: numbers, times, and what is missing. */

/** The finding for a member that is missing or of the wrong type. */
export function missing(at: string, value: unknown, expected: string): Finding {
  const hexDigits = typeof value === "string" ? /^0x([0-9a-f]*)$/i.exec(value)?.[1]?.length : undefined;
  const isShort = hexDigits !== undefined && hexDigits < 64 && expected.includes("0x");
  const got = showValue(value);
  return finding("missing-member", at, {
    got: isShort ? `${got}, which has ${hexDigits} hexadecimal digits; an address has 40` : got,
    expected,
    ...(expected !== decimalDigits && {
      why: "The facilitator reads members as they are.",
      fix: `Send ${expected}.`,
    }),
  });
}

const decimalDigits = "a string of decimal digits";

/** Checks that a value is a uint256 as the protocol writes it. With `units` it is an amount, which people write in whole tokens by mistake. */
export function explainNumber(at: string, value: unknown, units: TokenUnits | undefined): Finding[] {
  if (typeof value === "string" && parseUint256(value) !== null) return [];
  if (typeof value === "string" && /^[1-9]\d{77,}$/.test(value)) {
    return [finding("number-too-large", at, { got: showValue(value), expected: "below 2^256" })];
  }
  const unreadable = missing(at, value, decimalDigits);
  if (units === undefined) return [unreadable];
  const { symbol, decimals } = units;
  const text = typeof value === "string" && value.length < 100 ? value : "";
  const [, digits = "", unit = ""] = /^\$?(\d*\.?\d+)\s*(\D.*)?$/.exec(text) ?? [];
  const inTokens = parseAmount(digits, decimals);
  if (
    inTokens !== undefined &&
    ["", "usd", "usdc", "$", symbol.toLowerCase()].includes(unit.toLowerCase()) &&
    /[^\d\s]/.test(text)
  ) {
    return [finding("amount-in-dollars", at, { got: showValue(value), expected: `"${inTokens}"` })];
  }
  return [unreadable];
}

/** The bounds of a payment, and what they are called. */
type SignedTimes = {
  member: string;
  words: PaymentWords;
  start: bigint | undefined;
  end: bigint | undefined;
  /** Of the shop, whose maxTimeoutSeconds buyers sign by. */
  asked: { at: string; value: Record<string, unknown> } | undefined;
};

/**
 * Compares the bounds of a payment with the time.
 *
 * @param now unix seconds; undefined checks their units alone
 * @param clock the name of the clock that `now` is from, if messages are to name it
 */
export function explainTimes(
  { member, words, start, end, asked }: SignedTimes,
  { now, clock }: { now: bigint | undefined; clock?: string | undefined },
): Finding[] {
  const findings: Finding[] = [];
  const inMilliseconds = (time: bigint | undefined) =>
    time !== undefined && time > 100_000_000_000n && time < 100_000_000_000_000n;
  for (const [name, time] of [
    [words.start, start],
    [words.end, end],
  ] as const) {
    if (time === undefined || !inMilliseconds(time)) continue;
    const facts = { got: `${time}`, expected: `${time / 1000n}` };
    findings.push(finding("times-in-milliseconds", `${member}.${name}`, facts));
  }
  if (now === undefined) return findings;
  // Where a bound is in the window itself, it is one second nearer.
  const bound = words.includesBounds ? 1n : 0n;
  if (start !== undefined && !inMilliseconds(start) && start >= now + bound) {
    const got = `${formatMoment(start, now)}${clock === undefined ? "" : ` by ${clock}`}`;
    const facts = { got, expected: `before ${formatMoment(now + bound, now)}` };
    findings.push(finding("not-valid-yet", `${member}.${words.start}`, facts));
  }
  if (end === undefined || inMilliseconds(end)) return findings;
  const isExpired = end < now + expiryMarginSeconds;
  if (!isExpired && end <= now + usualMaxValiditySeconds) return findings;
  // Where the shop offers such a time, its buyers sign for it.
  const { at: side, value: { maxTimeoutSeconds: seconds } = {} } = asked ?? {};
  const isShort = typeof seconds === "number" && seconds <= Number(expiryMarginSeconds);
  const ofShop = isExpired === isShort ? explainTimeout(`${side}.maxTimeoutSeconds`, seconds) : [];
  const got = `${formatMoment(end, now)}${clock === undefined ? "" : ` by ${clock}`}`;
  const least = `at least ${formatMoment(now + expiryMarginSeconds, now)}`;
  const most = `at most ${formatMoment(now + usualMaxValiditySeconds, now)}`;
  const own = isExpired
    ? finding("expired", `${member}.${words.end}`, { got, expected: least })
    : finding("valid-too-long", `${member}.${words.end}`, { got, expected: most });
  findings.push(...(ofShop.length > 0 ? ofShop : [own]));
  return findings;
}
