import type { Invalid } from "../../protocol/catalogue.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import { formatMoment } from "../../protocol/moments.ts";
import { expiryMarginSeconds, isInMilliseconds, usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { boundsOf } from "../../protocol/signed-payment.ts";
import { explainTimeout } from "./explain-exchange.ts";

/**
 * The finding for a payment refused because of its times.
 *
 * @param now Unix seconds
 * @param clock the name of the clock that `now` comes from, if messages should name it
 * @param place the path of the shop's terms; buyers sign by their maxTimeoutSeconds
 */
export function explainWindow(
  refusal: Invalid,
  { payment: { window }, words, requirements }: PaymentRequest,
  { now, clock, place }: { now: bigint; clock: string | undefined; place: string },
): Finding {
  const { start, end } = boundsOf(window, words);
  const { situation } = refusal;
  const isStart = isOfStart(refusal);
  const [time, name] = isStart ? [start, words.start] : [end, words.end];
  const at = words.nonce.replace(/\w+$/, name);
  if (isInMilliseconds(time)) {
    return finding("times-in-milliseconds", at, { situation, got: `${time}`, expected: `${time / 1000n}` });
  }
  const got = `${formatMoment(time, now)}${clock === undefined ? "" : ` by ${clock}`}`;
  if (isStart) {
    // If the window includes its bounds, the start may also equal `now`.
    const expected = `before ${formatMoment(words.includesBounds ? now + 1n : now, now)}`;
    return finding("not-valid-yet", at, { situation, got, expected });
  }
  const isExpired = situation === "expired";
  // Buyers sign by the shop's maxTimeoutSeconds, so if that explains the time, report it instead.
  const { maxTimeoutSeconds: seconds } = requirements;
  const isShort = seconds !== undefined && seconds <= Number(expiryMarginSeconds);
  const [ofShop] = isExpired === isShort ? explainTimeout(`${place}.maxTimeoutSeconds`, seconds) : [];
  if (ofShop !== undefined) return { situation, ...ofShop };
  const least = `at least ${formatMoment(now + expiryMarginSeconds, now)}`;
  const most = `at most ${formatMoment(now + usualMaxValiditySeconds, now)}`;
  return isExpired
    ? finding("expired", at, { situation, got, expected: least })
    : finding("valid-too-long", at, { situation, got, expected: most });
}

/** True if a payment is refused because it is not valid yet. */
export function isOfStart({ situation }: Invalid): boolean {
  return situation === "not_valid_yet" || situation === "never_valid";
}
