import type { Authorization } from "./exact-eip3009/authorization.ts";

/** What says when a payment is valid: unix seconds, both of them exclusive. */
export type PaymentTimes<Time = Authorization["validAfter"]> = Record<"validAfter" | "validBefore", Time>;

/** A time of a payment as people give it, in forms and in what they write. */
export type TimeField = { name: keyof PaymentTimes; label: string; isEnd: boolean };

/** In the order in which they are asked for. */
export const timeFields: readonly [TimeField, TimeField] = [
  { name: "validAfter", label: "Valid after", isEnd: false },
  { name: "validBefore", label: "Valid before", isEnd: true },
];

/** Something for each of the times. */
export function forTimes<T>(give: (field: TimeField) => T): PaymentTimes<T> {
  const [start, end] = timeFields;
  return { validAfter: give(start), validBefore: give(end) };
}

/** When a payment is valid, in seconds from some time: at once, where its beginning is left out. */
export type RelativeTimes = { from?: number; until: number | bigint };

/** The times of a payment that is signed so long before, or after, they come. */
export function timesFrom(now: bigint, { from, until }: RelativeTimes): PaymentTimes {
  return {
    validAfter: from === undefined ? 0n : now + BigInt(from),
    validBefore: now + BigInt(until),
  };
}
