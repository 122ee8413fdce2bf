import { z } from "zod";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import { postPayment, type ReceivedPayment } from "../scene/offers.ts";
import type { ShopScene } from "../scene/scene.ts";

const settleAnswer = z.looseObject({
  success: z.boolean().default(false),
  transaction: z.string().default(""),
  errorReason: z.string().default("unexpected_settle_error"),
});

/** The outcome of a payment at the shop's facilitator. `why` explains a refusal in detail, if known. */
export type Settled = {
  success: boolean;
  transaction: string;
  reason: string;
  why?: string | undefined;
  isPending: boolean;
};

/** A received payment, and how often it was sent. */
export type Received = { payment: ReceivedPayment; times: number; settling?: Promise<Settled> };

/** Settles payments through the facilitator, or directly on chain if the recipient is not the facilitator contract. */
export function createShopSettling(scene: ShopScene, received: ReadonlyMap<Hex, Received>) {
  async function settleNow(payment: ReceivedPayment): Promise<Settled> {
    const refused = { success: false, transaction: "", isPending: false };
    const { offer, misfit, body } = payment;
    if (misfit !== undefined) return { ...refused, reason: misfit.reason, why: misfit.fact };
    if (!sameAddress(offer.payTo, offer.facilitator)) {
      const transaction = await scene.submit(payment);
      return transaction === undefined
        ? { ...refused, reason: "invalid_payload" }
        : { success: true, transaction, reason: "", isPending: false };
    }
    const { headers, text } = await postPayment("settle", scene.facilitatorUrl, scene.apiKey, body);
    const isPending = headers["x-settlement-state"] === "pending";
    const { success, transaction, errorReason } = settleAnswer.parse(JSON.parse(text));
    return { success, transaction, reason: success ? "" : errorReason, isPending };
  }

  /** Settles a payment once: repeated calls return the same outcome, unless it is still undecided. */
  return function settle(payment: ReceivedPayment): Promise<Settled> {
    const known = received.get(payment.signed.nonce);
    if (known?.settling !== undefined) return known.settling;
    const settling = settleNow(payment).then(
      (settled) => {
        // An undecided settlement may be tried again.
        if (known !== undefined && (settled.isPending || settled.reason === "unexpected_settle_error")) {
          delete known.settling;
        }
        return settled;
      },
      (error: unknown): Settled => {
        if (known !== undefined) delete known.settling;
        return { success: false, transaction: "", reason: String(error), isPending: false };
      },
    );
    if (known !== undefined) known.settling = settling;
    return settling;
  };
}
