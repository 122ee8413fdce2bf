import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import type { OpenMaxima } from "../../protocol/open-maxima.ts";
import { problemDetails } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { ForbiddenError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";
import { createAwaitOutcome } from "./await-outcome.ts";
import { type Claimant, claimNothing, claimPayment } from "./claim-payment.ts";
import { type FacilitatorContext, type Lane, publishChecksOf, type Waiting } from "./context.ts";
import { refuseWithUse, refuseWithUseOnChain } from "./earlier-use.ts";
import { createGasBudget } from "./gas-budget.ts";
import { bindingOf, hasPaid, isBound } from "./idempotent.ts";
import {
  checkForCaller,
  createPaymentIntake,
  payeeFor,
  requireScope,
  verifySignature,
  withOperator,
} from "./intake.ts";
import {
  createAcquireSoon,
  createRepeats,
  createRequestLeases,
  type Lease,
  leaseWaitMs,
  newLease,
  whileUnderWay,
} from "./request-leases.ts";
import { alreadyDelivered, refuse, type SettleResult, successOf } from "./settle-result.ts";
import { createTurns } from "./turns.ts";
import { accountOf, isOwn } from "./verify.ts";

/**
 * Settles a payment. Throws when the outcome cannot be determined, or when the API key does not allow it.
 * `signal` aborts when the caller has left: a payment that is not signed yet is dropped, and the right to answer is given
 * up at once, so that the same payment sent again can take it.
 *
 * `repeats`: a delivered success is given again to the same payment with the same identifier.
 */
export type Settle = (
  request: PaymentRequest,
  caller: Caller,
  signal: AbortSignal,
  options?: { repeats: boolean },
) => Promise<SettleResult>;

/**
 * Makes settle. All checks run under a leased lock on the authorization; then the relayer claims it for the
 * organization together with the signed transaction, and the lease becomes the right to the answer.
 */
export function createSettle(context: FacilitatorContext, maxima: OpenMaxima): Settle {
  const { networks, ledger, ways, now, settleWaitMs, serviceId } = context;
  const intake = createPaymentIntake(networks, ways);
  const gasBudget = createGasBudget(ledger.outcomes, now);
  const inFlight = createRepeats(now);
  const turns = createTurns(ledger.outcomes, now);
  const leases = createRequestLeases(ledger, now);
  const acquireSoon = createAcquireSoon(context, leases);
  const awaitOutcome = createAwaitOutcome(context, leases);

  return async (request, caller, signal, options) => {
    const result = await settle(request, caller, signal, options);
    return result.kind === "invalid"
      ? { kind: "invalid", invalid: withReasonOfMethod(result.invalid, request.words) }
      : result;
  };

  async function settle(
    request: PaymentRequest,
    caller: Caller,
    signal: AbortSignal,
    { repeats: replaysSuccess }: { repeats: boolean } = { repeats: false },
  ): Promise<SettleResult> {
    const waiting: Waiting = { now, signal, deadline: now() + settleWaitMs[request.x402Version] };
    const checked = publishChecksOf(request, serviceId);
    const read = intake(request, "settle", checked);
    if ("reason" in read) return refuseFirst(read, request, caller);
    const { payment, lanes } = read;
    const [{ chain }] = lanes;
    requireScope(caller, "settle");
    const recipient = payeeFor(caller, payment);
    if (recipient === undefined) {
      throw new ForbiddenError(problemDetails.lacksRecipient(payment.network.name));
    }
    const refusedForCaller = checkForCaller(caller, payment, checked);
    if (refusedForCaller !== undefined) return refuse(refusedForCaller);
    const proven = await verifySignature(payment, chain, ways);
    if ("reason" in proven) return refuseFirst(checked("signatureHolds", proven), request, caller);
    checked("signatureHolds", undefined);

    const identifier = bindingOf(request, payment);
    await isBound(ledger, caller.organization.id, identifier);
    const claimant = { ...{ payment, identifier, caller, recipient, checked }, ...proven };
    const result = await settleOnce(claimant);
    const wasHandedOver = result.kind === "invalid" && result.invalid.situation === "settled_before";
    if (!replaysSuccess || !wasHandedOver) return result;
    return (await successAgain(claimant, ledger)) ?? result;

    async function settleOnce(claimant: Omit<Claimant, keyof Lane>): Promise<SettleResult> {
      const lease = newLease(payment, caller);
      const waitMs = Math.min(leaseWaitMs, waiting.deadline - now());
      const first = await inFlight.begin(`${caller.organization.id} ${payment.digest}`, waitMs, signal);
      if (first === undefined) return whileUnderWay(await ledger.claims.find(payment.id), lease);
      try {
        const taken = await acquireSoon(lease, waiting);
        if (taken === undefined) return await settleLeased(claimant, lease);
        if (taken.kind === "invalid") checked("authorizationIsFree", taken.invalid);
        return taken;
      } finally {
        first.end();
      }
    }

    async function settleLeased(claimant: Omit<Claimant, keyof Lane>, lease: Lease): Promise<SettleResult> {
      const { chainId } = payment.network;
      const payer = { chainId, asset: payment.asset.address, payer: payment.signed.payer };
      const turn = turns.of(payer, { organizationId: caller.organization.id, network: payment.network });
      let isClaimed = false;
      let isSuccess = false;
      try {
        const takesNothing = payment.takesLess && payment.amount === 0n;
        if ((await ledger.claims.find(payment.id)) === null) {
          checked("authorizationIsFree", undefined);
          const refusal = takesNothing
            ? await claimNothing({ ...claimant, ...lanes[0] }, { ledger, ways, gasBudget })
            : await withOperator(lanes, (lane) =>
                claimPayment({ ...claimant, ...lane }, { ...waiting, gasBudget, turn, ways }),
              );
          // Claimed by a request whose lease ran out meanwhile: it was refused for its own transaction.
          if (refusal !== undefined && (await ledger.claims.find(payment.id)) === null) {
            const told = await refuseWithUseOnChain(context, refusal, request);
            await leases.giveUp(lease);
            return refuse(told);
          }
          isClaimed = refusal === undefined;
          if (isClaimed && payment.takesLess) maxima.close(accountOf(payment), payment.id);
        }
        const result = await awaitOutcome(lease, waiting, { isFresh: isClaimed && !takesNothing });
        isSuccess = result.kind === "success";
        return result;
      } catch (error) {
        await leases.giveUp(lease);
        throw error;
      } finally {
        turn.end(isClaimed && !isSuccess);
      }
    }
  }

  /** The answer where checks fail that come before the ledger is asked. */
  async function refuseFirst(
    refusal: Invalid,
    request: PaymentRequest,
    { organization }: Caller,
  ): Promise<SettleResult> {
    return refuse(await refuseWithUse(context, refusal, request, organization.id));
  }
}

/** The success of a payment that was handed over before, for the identifier that it was settled under. */
async function successAgain(
  { payment, identifier, caller }: Pick<Claimant, "payment" | "identifier" | "caller">,
  ledger: FacilitatorContext["ledger"],
): Promise<SettleResult | undefined> {
  const { id } = caller.organization;
  if (!(await isBound(ledger, id, identifier))) return undefined;
  const settlement = await ledger.claims.find(payment.id);
  if (settlement === null || !hasPaid(settlement) || !isOwn(settlement, payment, id)) return undefined;
  return { ...successOf(settlement, payment), delivery: alreadyDelivered };
}
