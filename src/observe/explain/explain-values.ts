import { type Finding, finding } from "../../protocol/mistakes.ts";
import { formatMoment } from "../../protocol/moments.ts";
import { expiryMarginSeconds, usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import type { PaymentWords } from "../../protocol/signed-payment.ts";
import { explainTimeout } from "./explain-exchange.ts";

/* Explains single values of a payment: numbers, times, and what is missing. */

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
