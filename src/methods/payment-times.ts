import { refusals, usualMaxValiditySeconds } from "../protocol/refusals.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { boundsOf, type PaymentWords, type SignedPayment } from "../protocol/signed-payment.ts";
import type { Authorization } from "./exact-eip3009/authorization.ts";
import { eip3009Words } from "./exact-eip3009/eip3009-method.ts";

/** The validity of a payment: unix seconds, both bounds exclusive. */
export type PaymentTimes<Time = Authorization["validAfter"]> = Record<"validAfter" | "validBefore", Time>;

/** A time of a payment, as an input field. */
export type TimeField = { name: keyof PaymentTimes; label: string; isEnd: boolean };

/** In display order. */
export const timeFields: readonly [TimeField, TimeField] = [
  { name: "validAfter", label: "Valid after", isEnd: false },
  { name: "validBefore", label: "Valid before", isEnd: true },
];

/** Maps each of the two times to a value. */
export function forTimes<T>(give: (field: TimeField) => T): PaymentTimes<T> {
  const [start, end] = timeFields;
  return { validAfter: give(start), validBefore: give(end) };
}

/** The validity of a payment, in seconds from some time; without `from`, it is valid at once. */
export type RelativeTimes = { from?: number; until: number | bigint };

/** Converts relative times to absolute ones. */
export function timesFrom(now: bigint, { from, until }: RelativeTimes): PaymentTimes {
  return {
    validAfter: from === undefined ? 0n : now + BigInt(from),
    validBefore: now + BigInt(until),
  };
}

/** The values in the refusals. The chain's time is in unix seconds, or a placeholder. */
type Facts = { payment: PaymentRequest | undefined; now: bigint | string };

/** The signed bounds, and their names in messages. */
function timesOf(payment: PaymentRequest | undefined): {
  window: SignedPayment["window"];
  start: bigint;
  end: bigint;
  words: PaymentWords;
} {
  const window = payment?.payment.window ?? { first: 1n, last: -1n };
  const words = payment?.words ?? eip3009Words;
  return { window, words, ...boundsOf(window, words) };
}

/** Caps a number from the chain (at least 0), so that a situation forced on a valid payment looks real. Keeps placeholders. */
export const atMost = (known: bigint | string, most: bigint) =>
  typeof known === "string" || known <= most ? known : most < 0n ? 0n : most;
const atLeast = (known: bigint | string, least: bigint) =>
  typeof known === "string" || known >= least ? known : least;

const tooLate =
  (secondsLeft: bigint) =>
  ({ payment, now }: Facts) => {
    const { window, end, words } = timesOf(payment);
    return refusals.tooLate({ window, words }, atLeast(now, end - secondsLeft));
  };

/** Scenarios in which the payment is too early. Times are in seconds from the chain's time. */
export const earlyCases = {
  not_yet_valid: {
    means: "The authorization is not valid yet: the chain's time has not passed `validAfter`.",
    payment: { valid: { from: 300 } },
    refusal: ({ payment, now }: Facts) => {
      const { window, words } = timesOf(payment);
      return refusals.tooEarly(window, atMost(now, window.first - 1n), words);
    },
  },
} as const;

/** Scenarios in which the payment is too late, or valid for too long. */
export const lateCases = {
  expired: {
    means: "The authorization has expired: the chain's time has reached `validBefore`.",
    payment: { valid: { until: -1 } },
    refusal: tooLate(0n),
    leaves: "expired",
  },
  expires_too_soon: {
    means: "The authorization expires in less than the six seconds that settling may take.",
    payment: { valid: { until: 4 } },
    refusal: tooLate(4n),
    leaves: "expired",
  },
  expires_too_late: {
    means: "The authorization is valid for longer than the facilitator accepts: a day, unless configured.",
    clientShould: "Let the payer sign again, with a `validBefore` that is minutes ahead.",
    payment: { valid: { until: Number(usualMaxValiditySeconds) + 3_600 } },
    refusal: ({ payment, now }: Facts) => {
      const { window, end, words } = timesOf(payment);
      const latest = end - usualMaxValiditySeconds - 1n;
      return refusals.tooFarAhead({ window, words }, atMost(now, latest), usualMaxValiditySeconds);
    },
  },
} as const;

/** A change to a request that invalidates its signature. */
export const changeAfterSigning = { "paymentPayload.payload.authorization.validAfter": "1" } as const;
