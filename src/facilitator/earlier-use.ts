import type { Ledger } from "../ledger/ledger.ts";
import type { Hex } from "../protocol/hex.ts";
import type { Invalid } from "../protocol/reasons.ts";
import { isSignedAgain, refuseUsed, situationOfUse } from "../protocol/refuse-used.ts";

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
