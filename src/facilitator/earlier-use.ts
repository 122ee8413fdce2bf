import type { Ledger } from "../ledger/ledger.ts";
import type { Settlement } from "../ledger/settlement.ts";
import type { Hex } from "../protocol/hex.ts";
import type { Invalid } from "../protocol/reasons.ts";
import { refusals } from "../protocol/refusals.ts";
import { isSignedAgain, refuseUsed, situationOfUse } from "../protocol/refuse-used.ts";
import type { FollowUp } from "../relayer/recovery.ts";

/**
 * A refusal as it is answered. Where payers would sign anew for it, the ledger is asked first whether an earlier request
 * has used the authorization: checks that need no ledger come before those that do, and a payment that is sent again with
 * another price would else be paid twice.
 *
 * @param organizationId of the caller; undefined of one without a key
 */
export async function refuseWithUse(
  ledger: Pick<Ledger, "find" | "findLease">,
  refusal: Invalid,
  id: Hex,
  organizationId: string | undefined,
): Promise<Invalid> {
  if (!isSignedAgain(refusal)) return refusal;
  // In this order: a lease is only given up once its payment is in the ledger, or will not be.
  const lease = await ledger.findLease(id);
  const settlement = await ledger.find(id);
  if (settlement === null) return lease === null ? refusal : refuseUsed(refusal, "under_way");
  const { state, deliveredAt } = settlement;
  const isOwn = settlement.organizationId === organizationId;
  return refuseUsed(refusal, situationOfUse(state, deliveredAt, isOwn));
}

/**
 * What is said of a settlement that holds no success for those who send its payment again. Only its owner learns the hash.
 *
 * @param followUp what the chain said of a failed one, where it was asked
 */
export function refuseClosed(
  { state, transactionHash, organizationId, failure }: Settlement,
  callerId: string | undefined,
  followUp?: FollowUp,
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
