import { type Chain, type ChainView, eachEndpoint, failureEndpoints } from "../../chain/chain.ts";
import type { Claims, Leases } from "../../ledger/ledger.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { findAsset } from "../../protocol/networks.ts";
import {
  isSignedAgain,
  refuseUntold,
  refuseUsed,
  refuseUsedOnChain,
  situationOfUse,
} from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { UndeterminedError } from "../../util/errors.ts";
import type { FacilitatorContext } from "./context.ts";

/** The members of a refused request that are looked up. */
type RefusedRequest = Pick<PaymentRequest, "settlementId" | "knownNetwork" | "payment">;

/**
 * A refusal as it is answered. Where payers would sign anew for it, the ledger is asked first whether an earlier request
 * has used the authorization, and then the chain, which also knows what the ledger does not: checks that need neither come
 * before those that do, and a payment that is sent again with another price would else be paid twice.
 *
 * @param organizationId of the caller; undefined of one without a key
 */
export async function refuseWithUse(
  context: Pick<FacilitatorContext, "networks" | "ways"> & {
    ledger: { claims: Pick<Claims, "find">; leases: Pick<Leases, "findLease"> };
  },
  refusal: Invalid,
  request: RefusedRequest,
  organizationId: string | undefined,
): Promise<Invalid> {
  if (!isSignedAgain(refusal)) return refusal;
  const { ledger } = context;
  const { settlementId: id } = request;
  // In this order: a lease is only given up once its payment is in the ledger, or will not be.
  const lease = await ledger.leases.findLease(id);
  const settlement = await ledger.claims.find(id);
  if (settlement === null) {
    return lease === null
      ? refuseWithUseOnChain(context, refusal, request)
      : refuseUsed(refusal, "under_way");
  }
  const { state, deliveredAt } = settlement;
  const isOwn = settlement.organizationId === organizationId;
  return refuseUsed(refusal, situationOfUse(state, deliveredAt, isOwn));
}

/** The same of an authorization that the ledger does not know. */
export async function refuseWithUseOnChain(
  { networks, ways }: Pick<FacilitatorContext, "networks" | "ways">,
  refusal: Invalid,
  { settlementId: id, knownNetwork, payment }: RefusedRequest,
): Promise<Invalid> {
  // Always that of the first operator, so that all refusals of a network share its requests.
  const chain = networks.get(knownNetwork.name)?.[0].chain;
  if (!isSignedAgain(refusal) || chain === undefined) return refusal;
  // What a payload calls a token need not be one, and then has no answer.
  if (findAsset(chain.network.assets, payment.asset) === undefined) return refusal;
  try {
    const isUsed = await isUsedByAny(chain, (view) =>
      ways.settlingOf(payment.method).isUsed(view, payment, id),
    );
    return isUsed ? refuseUsedOnChain(refusal) : refusal;
  } catch (error) {
    if (error instanceof UndeterminedError) return refuseUntold(refusal);
    throw error;
  }
}

/**
 * Returns true if one of two endpoints, or the only one, says that an authorization was used: one that is behind, or lies, would have
 * its payer sign another. Those that give no answer are passed over; where one alone answers, its word counts.
 *
 * @throws UndeterminedError when none answered
 */
async function isUsedByAny(
  chain: Pick<Chain, "endpoints">,
  isUsed: (view: ChainView) => Promise<boolean>,
): Promise<boolean> {
  let unused = 0;
  for await (const used of eachEndpoint(chain, isUsed)) {
    if (used) return true;
    if (++unused === failureEndpoints) break;
  }
  return false;
}
