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

/** The fields of a refused request that are looked up. */
type RefusedRequest = Pick<PaymentRequest, "settlementId" | "knownNetwork" | "payment">;

/**
 * Adds an earlier use of the authorization to a refusal for which payers would sign a new one. The ledger is asked
 * first, then the chain, which also knows uses outside this service. Without this, a payment sent again at another
 * price might be refused for the price before its use is noticed, and be paid twice.
 *
 * @param organizationId of the caller; undefined for a caller without a key
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
  // In this order: a lease is only given up once its payment is in the ledger or never will be.
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

/** Like {@link refuseWithUse}, for an authorization that the ledger does not know. */
export async function refuseWithUseOnChain(
  { networks, ways }: Pick<FacilitatorContext, "networks" | "ways">,
  refusal: Invalid,
  { settlementId: id, knownNetwork, payment }: RefusedRequest,
): Promise<Invalid> {
  // Always the first operator's chain, so that all refusals of a network share its requests.
  const chain = networks.get(knownNetwork.name)?.[0].chain;
  if (!isSignedAgain(refusal) || chain === undefined) return refusal;
  // The payload may name an address that is no token; asking it would give no answer.
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
 * Returns true if one of two endpoints, or the only one, reports the authorization as used. One endpoint is not
 * enough: if it is behind or lies, the payer would sign a second payment. Endpoints that do not answer are skipped;
 * if only one answers, its answer counts.
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
