import type { Settlement } from "../../ledger/settlement.ts";
import { withReasonOfMethod } from "../../protocol/catalogue.ts";
import type { OpenMaxima } from "../../protocol/open-maxima.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { hasPaid, isOwn, refuseClosed } from "../../protocol/settlement-rules.ts";
import { UndeterminedError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { FollowUp } from "../relayer/recovery.ts";
import { createApprovalWaits } from "./approval-waits.ts";
import { refuseForeignChannel } from "./channel-owners.ts";
import { type Claimant, claimNothing, claimPayment } from "./claim-payment.ts";
import type { FacilitatorContext, Waiting } from "./context.ts";
import { refuseWithUse, refuseWithUseOnChain } from "./earlier-use.ts";
import { createExamine } from "./examine.ts";
import { createGasBudget } from "./gas-budget.ts";
import { isBound } from "./idempotent.ts";
import { notServed, withOperator } from "./lanes.ts";
import {
  createAcquireSoon,
  createRepeats,
  createRequestLeases,
  isOpenTo,
  isOwnFailure,
  type Lease,
  leaseWaitMs,
  newLease,
  type RequestLeases,
  whileUnderWay,
} from "./request-leases.ts";
import { createRevertDelays } from "./revert-delays.ts";
import { alreadyDelivered, refuse, type SettleResult, successOf } from "./settle-result.ts";
import { withSettledAnswer } from "./settled-answer.ts";
import { accountOf } from "./verify.ts";

/**
 * Settles a payment. Throws when the outcome cannot be determined, or when the API key does not allow it. `signal`
 * aborts when the caller has left: a payment that is not signed yet is dropped, and the right to answer is given up
 * at once, so that a repeat of the same payment can take it.
 *
 * `repeats`: the same payment with the same identifier gets a delivered success again.
 */
export type Settle = (
  request: PaymentRequest,
  caller: Caller,
  signal: AbortSignal,
  options?: { repeats: boolean },
) => Promise<SettleResult>;

/**
 * Makes settle. All checks run under a leased lock on the authorization; then the relayer claims it for the
 * organization together with the signed transaction, and the lease becomes the right to answer.
 */
export function createSettle(context: FacilitatorContext, maxima: OpenMaxima): Settle {
  const { ledger, ways, now, settleWaitMs } = context;
  const examine = createExamine(context);
  const gasBudget = createGasBudget(ledger.outcomes, now);
  const inFlight = createRepeats(now);
  const delays = createRevertDelays(ledger.outcomes, now);
  const waits = createApprovalWaits(now);
  const leases = createRequestLeases(ledger, now);
  const acquireSoon = createAcquireSoon(context, leases);
  const awaitOutcome = createAwaitOutcome(context, leases);

  return async (request, caller, signal, options) => {
    const result = await settle(request, caller, signal, options);
    return result.kind === "invalid"
      ? { kind: "invalid", invalid: withReasonOfMethod(result.invalid, request) }
      : result;
  };

  async function settle(
    request: PaymentRequest,
    caller: Caller,
    signal: AbortSignal,
    { repeats }: { repeats: boolean } = { repeats: false },
  ): Promise<SettleResult> {
    const waiting: Waiting = { now, signal, deadline: now() + settleWaitMs[request.x402Version] };
    const examined = await examine(request, "settle", caller);
    if ("reason" in examined) {
      return refuse(await refuseWithUse(context, examined, request, caller.organization.id));
    }
    const { payment, lanes, recipient, trail } = examined;
    if (recipient === undefined) throw new Error("a payment without a recipient was examined");
    const claimant: Claimant = { ...examined, caller, recipient };
    const settling = ways.settlingOf(payment.signed.method);
    const owned = settling.channels?.ownedBy(payment.signed, payment.network);
    const foreign = owned && (await refuseForeignChannel(ledger, owned, caller, payment.network));
    if (foreign !== undefined) {
      const refusal = trail.refuse("payToIsOwn", foreign);
      return refuse(await refuseWithUse(context, refusal, request, caller.organization.id));
    }
    const settled = await settleOnce();
    trail.publish();
    const wasHandedOver = settled.kind === "invalid" && settled.invalid.situation === "settled_before";
    const again = repeats && wasHandedOver ? await successAgain(claimant, ledger) : undefined;
    const result = again ?? settled;
    const { describeSettled } = settling;
    return describeSettled === undefined
      ? result
      : withSettledAnswer(describeSettled, result, payment, context);

    async function settleOnce(): Promise<SettleResult> {
      const lease = newLease(payment, caller);
      const waitMs = Math.min(leaseWaitMs, waiting.deadline - now());
      const first = await inFlight.begin(`${caller.organization.id} ${payment.digest}`, waitMs, signal);
      if (first === undefined) return whileUnderWay(await ledger.claims.find(payment.id), lease);
      try {
        const taken = await acquireSoon(lease, waiting);
        if (taken === undefined) return await settleLeased(lease);
        if (taken.kind === "invalid") trail.refuse("authorizationIsFree", taken.invalid);
        return taken;
      } finally {
        first.end();
      }
    }

    async function settleLeased(lease: Lease): Promise<SettleResult> {
      const { chainId } = payment.network;
      const payer = { chainId, asset: payment.asset.address, payer: payment.signed.payer };
      const turn = delays.of(payer, { organizationId: caller.organization.id, network: payment.network });
      let isClaimed = false;
      let isSuccess = false;
      try {
        const takesNothing = payment.takesLess && payment.amount === 0n;
        if ((await ledger.claims.find(payment.id)) === null) {
          trail.pass("authorizationIsFree");
          const operators = lanes ?? notServed(payment.network.name);
          const refusal = takesNothing
            ? await claimNothing(claimant, operators[0], { ledger, ways, gasBudget })
            : await withOperator(operators, (lane) =>
                claimPayment(claimant, lane, { ...waiting, gasBudget, turn, waits, ways, ledger }),
              );
          // If it is claimed after all, a request whose lease had run out claimed it, and this refusal is only due to that
          // request's transaction.
          if (refusal !== undefined && (await ledger.claims.find(payment.id)) === null) {
            // Another organization may have opened the channel meanwhile.
            const opened = owned && (await refuseForeignChannel(ledger, owned, caller, payment.network));
            const told = await refuseWithUseOnChain(context, opened ?? refusal, request);
            await leases.giveUp(lease);
            return refuse(told);
          }
          isClaimed = refusal === undefined;
          if (isClaimed && payment.takesLess)
            maxima.close(accountOf(payment, caller.organization), payment.id);
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
}

/** The success of a payment that was handed over before, if it was settled under the same identifier. */
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

/** Between two reads of the ledger while waiting for an outcome that another instance may conclude. */
const ledgerPollMs = 1_000;

/**
 * Waits for the outcome of a claimed payment, and answers if this request may. A payment that was just claimed is
 * still on its way to the node, so the ledger is not read before its outcome is announced.
 */
type AwaitOutcome = (lease: Lease, waiting: Waiting, options: { isFresh: boolean }) => Promise<SettleResult>;

function createAwaitOutcome(
  {
    ledger,
    outcomes,
    recoveries,
    now,
  }: Pick<FacilitatorContext, "ledger" | "outcomes" | "recoveries" | "now">,
  leases: RequestLeases,
): AwaitOutcome {
  /** The answer when the service stops or the caller leaves. */
  async function cutShort(lease: Lease): Promise<SettleResult> {
    const settlement = await ledger.claims.find(lease.payment.id);
    if (settlement === null || !isOpenTo(settlement, lease)) {
      throw new UndeterminedError(
        "The service stopped before the outcome of the payment was known; send the same payment again",
      );
    }
    // Servers using version 2 retry pending payments, and so reach another instance, or the next one.
    await leases.giveUp(lease);
    return { kind: "pending", transaction: settlement.transactionHash };
  }

  /**
   * Returns the recovery of this request's payment if it has failed; `unknown` while the chain cannot be asked.
   *
   * @throws UndeterminedError if that lasts until the deadline
   */
  async function followUp(
    settlement: Settlement,
    lease: Lease,
    deadline: number,
  ): Promise<FollowUp | undefined | "unknown"> {
    if (!isOwnFailure(settlement, lease)) return undefined;
    try {
      const { network, id } = lease.payment;
      return await recoveries.get(network.name)?.consider(id);
    } catch (error) {
      // It may not have failed for good, and only the chain can tell.
      if (now() >= deadline || !(error instanceof UndeterminedError)) throw error;
      return "unknown";
    }
  }

  return async (lease, { deadline, signal }, { isFresh }) => {
    const { payment } = lease;
    let isWorthReading = !isFresh;
    for (;;) {
      if (signal.aborted) return cutShort(lease);
      // Subscribed before the ledger is read, so that no conclusion is missed in between.
      const announced = outcomes.next(
        payment.id,
        Math.max(0, Math.min(ledgerPollMs, deadline - now())),
        signal,
      );
      if (!isWorthReading) {
        isWorthReading = true;
        await announced;
        continue;
      }
      const settlement = await ledger.claims.find(payment.id);
      if (settlement === null) throw new Error("a claimed settlement is missing from the ledger");
      const recovering = await followUp(settlement, lease, deadline);
      if (recovering === "unknown") {
        await announced;
        continue;
      }
      if (recovering?.outcome === "recovered") continue;
      const underWay = recovering?.outcome === "under_way" ? recovering.transaction : undefined;
      if (underWay === undefined && !isOpenTo(settlement, lease)) {
        await leases.giveUp(lease);
        return whyClosed(settlement, lease, recovering);
      }
      if (underWay === undefined && settlement.state !== "submitted") {
        if (leases.isTrusted(lease)) return handOver(settlement, lease, leases);
        // A process that was suspended may have lost the lease to another one, which answered meanwhile.
        if (!(await leases.take(lease))) return whileUnderWay(await ledger.claims.find(payment.id), lease);
        continue;
      }
      if (now() >= deadline) {
        await leases.giveUp(lease);
        return { kind: "pending", transaction: underWay ?? settlement.transactionHash };
      }
      await announced;
    }
  };
}

function handOver(settlement: Settlement, lease: Lease, leases: RequestLeases): SettleResult {
  return {
    ...successOf(settlement, lease.payment),
    delivery: {
      isDue: () => leases.isStillDue(lease),
      delivered: (kept) => leases.markDelivered(lease, kept),
      lost: () => leases.giveUp(lease),
    },
  };
}

/** The answer if a claimed authorization holds no success for this request. */
function whyClosed(
  settlement: Settlement,
  { payment, caller }: Lease,
  followUp: FollowUp | undefined,
): SettleResult {
  const { state, transactionHash } = settlement;
  const { id } = caller.organization;
  // It was handed over before, and is undecided again because a reorg removed its block.
  if (state === "submitted" && isOwn(settlement, payment, id)) {
    return { kind: "pending", transaction: transactionHash };
  }
  return refuse(refuseClosed(settlement, id, followUp));
}
