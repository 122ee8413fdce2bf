import { boundPayload } from "./bound-payload.ts";
import type { Invalid } from "./catalogue.ts";
import type { Hex } from "./hex.ts";
import { refusals } from "./refusals.ts";
import type { settlementStates } from "./settlement-query.ts";
import { fingerprintOf, type SignedPayment } from "./signed-payment.ts";

/*
 * Who may still have the success of a payment that is claimed: for the ledger of the service, and for that of the fixtures.
 */

/** A settlement, as far as that depends on it. */
export type ClaimedPayment = {
  organizationId: string;
  state: (typeof settlementStates)[number];
  /** Null while its success is undelivered. */
  deliveredAt: unknown;
  transactionHash: string;
  /** Why it failed. */
  failure: string | null;
};

/** Ties a settlement to one payment. */
type Claimed = { digest: Hex; amount: bigint; payload?: string | null };
/** `payload`: what the digest does not cover, if anything; see {@link boundPayload}. */
type Payment = { digest: Hex; signed: Pick<SignedPayment, "limit">; payload?: string | null };

/** Returns true if a settlement is of this very payment, however much of it was taken. */
export function isClaimedAs({ digest, amount, payload }: Claimed, payment: Payment): boolean {
  if (digest !== fingerprintOf(payment.digest, amount, payment.signed.limit)) return false;
  return payment.payload == null || (payload != null && boundPayload(payload) === payment.payload);
}

/** Returns true if it is of this very payment, and of this organization. */
export function isOwn(
  settlement: Claimed & Pick<ClaimedPayment, "organizationId">,
  payment: Payment,
  organizationId: string | undefined,
): boolean {
  return settlement.organizationId === organizationId && isClaimedAs(settlement, payment);
}

/** Returns true if its recipient has the money, so that its success may be given again to an organization that asks for that. */
export function hasPaid({ state }: Pick<ClaimedPayment, "state">): boolean {
  return state === "settled" || state === "recovered";
}

/**
 * Returns true if a settle by its organization may still answer with a success: its outcome is open, or was never handed over.
 * Public servers verify again before they settle again.
 */
export function isOpen({ state, deliveredAt }: Pick<ClaimedPayment, "state" | "deliveredAt">): boolean {
  return state !== "failed" && deliveredAt === null;
}

/**
 * The refusal of a settlement that holds no success for those who send its payment again. Only its owner learns the hash.
 *
 * @param followUp the chain's word on a failed one, where it was asked
 */
export function refuseClosed(
  { state, transactionHash, organizationId, failure }: ClaimedPayment,
  callerId: string | undefined,
  followUp?: { outcome: string },
): Invalid {
  if (organizationId !== callerId) return refusals.usedHere();
  switch (state) {
    case "settled":
    case "recovered":
      return refusals.settledBefore(transactionHash);
    case "submitted":
      return { ...refusals.usedHere(), situation: "pending" };
    case "failed": {
      const later =
        followUp?.outcome === "queued"
          ? "; the authorization was submitted directly to the token, and its value waits to be forwarded"
          : "";
      const why = `${failure ?? "no reason given"}${later}`;
      return followUp?.outcome === "expired"
        ? refusals.failedForGood(transactionHash, why)
        : refusals.failed(transactionHash, why);
    }
  }
}
