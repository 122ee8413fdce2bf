import { boundPayload } from "./bound-payload.ts";
import type { Invalid } from "./catalogue.ts";
import type { Hex } from "./hex.ts";
import { refusals } from "./refusals.ts";
import type { settlementStates } from "./settlement-query.ts";
import { fingerprintOf, type SignedPayment } from "./signed-payment.ts";

/* Who may still get the success of a claimed payment. Shared by the ledgers of the service and the fixtures. */

/** The parts of a settlement that these rules read. */
export type ClaimedPayment = {
  organizationId: string;
  state: (typeof settlementStates)[number];
  /** Null until its success is delivered. */
  deliveredAt: unknown;
  transactionHash: string;
  failure: string | null;
};

/** The values that tie a settlement to one payment. */
type Claimed = { digest: Hex; amount: bigint; payload?: string | null };
/** `payload`: the part that the digest does not cover, if any; see {@link boundPayload}. */
type Payment = { digest: Hex; signed: Pick<SignedPayment, "limit">; payload?: string | null };

/** True if a settlement is of exactly this payment, however much of it was taken. */
export function isClaimedAs({ digest, amount, payload }: Claimed, payment: Payment): boolean {
  if (digest !== fingerprintOf(payment.digest, amount, payment.signed.limit)) return false;
  return payment.payload == null || (payload != null && boundPayload(payload) === payment.payload);
}

/** True if a settlement is of exactly this payment and belongs to this organization. */
export function isOwn(
  settlement: Claimed & Pick<ClaimedPayment, "organizationId">,
  payment: Payment,
  organizationId: string | undefined,
): boolean {
  return settlement.organizationId === organizationId && isClaimedAs(settlement, payment);
}

/** True if its recipient has the money, so that an organization that asks may get its success again. */
export function hasPaid({ state }: Pick<ClaimedPayment, "state">): boolean {
  return state === "settled" || state === "recovered";
}

/**
 * True if a settle by its organization may still return a success: its outcome is open, or its success was never
 * delivered. Public servers verify again before they settle again.
 */
export function isOpen({ state, deliveredAt }: Pick<ClaimedPayment, "state" | "deliveredAt">): boolean {
  return state !== "failed" && deliveredAt === null;
}

/**
 * The refusal for a settlement that has no success to give to those who send its payment again. Only its owner learns
 * the hash.
 *
 * @param followUp what the chain says about a failed one, if it was asked
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
