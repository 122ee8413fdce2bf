import type { Invalid } from "../../protocol/catalogue.ts";
import { channelInvalid } from "../../protocol/channel-reasons.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { payoutOf } from "./payloads.ts";

/** Returns the payout to send, or the refusal if nothing is owed. */
export function planPayout(payment: SignedPayment): SignedPayment | Invalid {
  return payoutOf(payment).owed === 0n
    ? channelInvalid("nothing_to_settle", `Nothing is owed to ${payment.payTo}`)
    : payment;
}

/** Refuses a payout that would revert. */
export function payoutReverts(why: string): Invalid {
  return channelInvalid("settle_simulation_failed", `The settle would revert on chain: ${why}`);
}
