import type { PaymentDetail } from "../payment-view.ts";

/** A time in unix seconds, and whose clock says it. */
export type ClockTime = { seconds: number; clock: "chain" | "machine" };

/** When a payment was asked for: the chain's time, or this machine's where that is not known, as with the mock. */
export function requestTimeOf({ chainTime, firstSeenAt }: PaymentDetail): ClockTime {
  return chainTime === null
    ? { seconds: Math.floor(firstSeenAt / 1_000), clock: "machine" }
    : { seconds: Number(chainTime), clock: "chain" };
}
