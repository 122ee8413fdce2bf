import type { KeptAnswer } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Hex } from "../../protocol/hex.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { ForbiddenError, UndeterminedError } from "../../util/errors.ts";
import type { Caller } from "../organizations/organizations.ts";
import { poll } from "../relayer/poll.ts";
import type { FollowUp } from "../relayer/recovery.ts";
import { type Claimant, claimPayment } from "./claim-payment.ts";
import { type FacilitatorContext, type Lane, publishChecksOf, type Waiting } from "./context.ts";
import { refuseClosed, refuseWithUse, refuseWithUseOnChain } from "./earlier-use.ts";
import { createGasBudget } from "./gas-budget.ts";
import {
  checkLimits,
  createPaymentIntake,
  recipientFor,
  requireScope,
  verifySignature,
  withOperator,
} from "./intake.ts";
import { bindingOf, hasPaid, isBound } from "./payment-binding.ts";
import { createRepeats, createRequestLeases, type Lease, newLease } from "./request-leases.ts";
import { createTurns } from "./turns.ts";
import { isOpenTo, isOwn, isOwnFailure } from "./verify.ts";

/**
 * What a settle came to.
 * - `success` is to be handed over exactly once: the answering side calls `delivered`, or `lost` when the answer could
 *   not be written. Until one of them is called, no other request gets this success.
 * - `pending`: signed and on its way, with its hash; the right to the answer has been given up already.
 */
export type SettleResult =
  | { kind: "invalid"; invalid: Invalid }
  | { kind: "success"; transaction: Hex; delivery: Delivery }
  | { kind: "pending"; transaction: Hex };

/** The fate of one success on its way to the caller. */
export type Delivery = {
  /**
   * Whether the success may still be given; to be called right before the last byte of the answer. False if this process
   * was suspended, and another request has taken the right to answer meanwhile.
   */
  isDue(): Promise<boolean>;
  /** The answer was written. `kept` is stored, and given again under its `Idempotency-Key`. */
  delivered(kept?: KeptAnswer): Promise<void>;
  /** The answer could not be written: the next identical request gets it. */
  lost(): Promise<void>;
};

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

/** A repeated answer is not handed over again: whether it arrives changes nothing. */
export const repeated: Delivery = {
  isDue: () => Promise.resolve(true),
  delivered: () => Promise.resolve(),
  lost: () => Promise.resolve(),
};

/** Between two looks at the ledger while waiting for an outcome that another instance may conclude. */
const ledgerPollMs = 1_000;

/** How long a repeat waits for the request before it, or for the lease of another instance's, and how often it tries. */
const leaseWaitMs = 1_000;
const leasePollMs = 25;

/** The same while it waits for the lease of another instance to be renewed or to run out. */
const leaseSlowPollMs = 250;

/**
 * Makes settle. All checks run under a leased lock on the authorization; then the relayer claims it for the
 * organization together with the signed transaction, and the lease becomes the right to the answer.
 */
export function createSettle(context: FacilitatorContext): Settle {
  const { networks, recoveries, ledger, ways, outcomes, now, settleWaitMs, serviceId } = context;
  const intake = createPaymentIntake(networks, ways);
  const gasBudget = createGasBudget(ledger, now);
  const repeats = createRepeats(now);
  const turns = createTurns(ledger, now);
  const leases = createRequestLeases(ledger, now);

  return async (request, caller, signal, { repeats: isRepeatable } = { repeats: false }) => {
    const waiting: Waiting = { now, signal, deadline: now() + settleWaitMs[request.x402Version] };
    const checked = publishChecksOf(request, serviceId);
    const read = intake(request, checked);
    if ("reason" in read) return refuseFirst(read, request, caller);
    const { payment, lanes } = read;
    const [{ chain }] = lanes;
    requireScope(caller, "settle");
    const recipient = recipientFor(caller, payment.network.name);
    if (recipient === undefined) {
      throw new ForbiddenError(problemDetails.lacksRecipient(payment.network.name));
    }
    const limited = checked("minimumIsReached", checkLimits(caller, payment));
    if (limited !== undefined) return refuse(limited);
    const proven = await verifySignature(payment, chain, ways);
    if ("reason" in proven) return refuseFirst(checked("signatureHolds", proven), request, caller);
    checked("signatureHolds", undefined);

    const identifier = bindingOf(request, payment);
    await isBound(ledger, caller.organization.id, identifier);
    const claimant = { ...{ payment, identifier, caller, recipient, checked }, ...proven };
    const result = await settleOnce(claimant);
    const wasHandedOver = result.kind === "invalid" && result.invalid.situation === "settled_before";
    if (!isRepeatable || !wasHandedOver) return result;
    return (await successAgain(claimant)) ?? result;

    async function settleOnce(claimant: Omit<Claimant, keyof Lane>): Promise<SettleResult> {
      const lease = newLease(payment, caller);
      const waitMs = Math.min(leaseWaitMs, waiting.deadline - now());
      const first = await repeats.begin(`${caller.organization.id} ${payment.digest}`, waitMs, signal);
      if (first === undefined) return whileUnderWay(await ledger.find(payment.id), lease);
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
        if ((await ledger.find(payment.id)) === null) {
          checked("authorizationIsFree", undefined);
          const refusal = await withOperator(lanes, (lane) =>
            claimPayment({ ...claimant, ...lane }, { ...waiting, gasBudget, turn, ways }),
          );
          // Claimed by a request whose lease ran out meanwhile: it was refused for its own transaction.
          if (refusal !== undefined && (await ledger.find(payment.id)) === null) {
            const told = await refuseWithUseOnChain(context, refusal, request);
            await leases.giveUp(lease);
            return refuse(told);
          }
          isClaimed = refusal === undefined;
        }
        const result = await awaitOutcome(lease, waiting, { isFresh: isClaimed });
        isSuccess = result.kind === "success";
        return result;
      } catch (error) {
        await leases.giveUp(lease);
        throw error;
      } finally {
        turn.end(isClaimed && !isSuccess);
      }
    }
  };

  /** The answer where checks fail that come before the ledger is asked. */
  async function refuseFirst(
    refusal: Invalid,
    request: PaymentRequest,
    { organization }: Caller,
  ): Promise<SettleResult> {
    return refuse(await refuseWithUse(context, refusal, request, organization.id));
  }

  /**
   * Takes the lease; gives the answer where it cannot be had. Waits a little for a holder who may be about to give it
   * up, because its own caller has just left: without that a buyer who repeats a payment right after a lost connection
   * would be turned away.
   *
   * A holder in another instance may have died with it. That shows only in that it renews nothing: until it does, or
   * its lease runs out, it is not known whether another answer will come.
   *
   * @throws UndeterminedError when it has not shown by the deadline, and nothing is claimed.
   */
  async function acquireSoon(lease: Lease, { deadline, signal }: Waiting): Promise<SettleResult | undefined> {
    const { payment, caller } = lease;
    const { id } = payment;
    const soon = now() + leaseWaitMs;
    let firstSeen: number | undefined;
    let settlement: Settlement | null = null;
    const look = async (): Promise<SettleResult | "acquired" | undefined> => {
      if (await leases.take(lease)) return "acquired";
      settlement = await ledger.find(id);
      const mayOpen =
        settlement === null ||
        isOpenTo(settlement, payment, caller.organization.id) ||
        isOwnFailure(settlement, payment, caller.organization.id);
      const held = mayOpen && now() >= soon ? await ledger.findLease(id) : null;
      firstSeen ??= held?.expiresAt;
      const lives = held !== null && (held.isOwn || held.expiresAt !== firstSeen);
      return !mayOpen || lives ? whileUnderWay(settlement, lease) : undefined;
    };
    const ended = await poll(look, {
      every: () => (now() < soon ? leasePollMs : leaseSlowPollMs),
      until: () => now() >= deadline,
      signal,
    });
    return ended === "acquired" ? undefined : (ended ?? whileUnderWay(settlement, lease));
  }

  /**
   * The answer to a request while another one has the right to the answer. To its owner a payment under way is never
   * refused: what becomes of it is not known, or on its way to the other request and perhaps lost there.
   *
   * @throws UndeterminedError while nothing is claimed.
   */
  function whileUnderWay(settlement: Settlement | null, { payment, caller }: Lease): SettleResult {
    if (settlement === null) {
      throw new UndeterminedError(
        "Another request has begun to settle this payment and has not ended; send the same payment again",
      );
    }
    const { state, transactionHash, deliveredAt } = settlement;
    if (!isOwn(settlement, payment, caller.organization.id)) {
      return refuse(refusals.beingSettled());
    }
    if (state !== "failed" && state !== "submitted" && deliveredAt !== null) {
      return refuse(refusals.settledBefore(transactionHash));
    }
    return { kind: "pending", transaction: transactionHash };
  }

  /** The success of a payment that was handed over before, for the identifier that it was settled under. */
  async function successAgain({
    payment,
    identifier,
    caller,
  }: Pick<Claimant, "payment" | "identifier" | "caller">): Promise<SettleResult | undefined> {
    const { id } = caller.organization;
    if (!(await isBound(ledger, id, identifier))) return undefined;
    const settlement = await ledger.find(payment.id);
    if (settlement === null || !hasPaid(settlement) || !isOwn(settlement, payment, id)) return undefined;
    return { kind: "success", transaction: settlement.transactionHash, delivery: repeated };
  }

  /**
   * Waits for the outcome of what is in the ledger, and answers if this request may. What has just been claimed is not
   * looked up before its outcome is announced: it is on its way to the node.
   */
  async function awaitOutcome(
    lease: Lease,
    { deadline, signal }: Waiting,
    { isFresh }: { isFresh: boolean },
  ): Promise<SettleResult> {
    const { payment, caller } = lease;
    let isWorthReading = !isFresh;
    for (;;) {
      if (signal.aborted) {
        const cutShort = await ledger.find(payment.id);
        if (cutShort === null || !isOpenTo(cutShort, payment, caller.organization.id)) {
          throw new UndeterminedError(
            "The service stopped before the outcome of the payment was known; send the same payment again",
          );
        }
        // Servers of version 2 ask again for what is pending, and so find another instance, or the next one.
        await leases.giveUp(lease);
        return { kind: "pending", transaction: cutShort.transactionHash };
      }
      // Subscribed before the ledger is read, so that no conclusion falls between the two.
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
      const settlement = await ledger.find(payment.id);
      if (settlement === null) throw new Error("a claimed settlement is missing from the ledger");
      const { organization } = caller;
      let recovering: FollowUp | undefined;
      if (isOwnFailure(settlement, payment, organization.id)) {
        try {
          recovering = await recoveries.get(payment.network.name)?.consider(payment.id);
        } catch (error) {
          // Whether it failed for good is not known as long as the chain cannot be asked.
          if (now() >= deadline || !(error instanceof UndeterminedError)) throw error;
          await announced;
          continue;
        }
        if (recovering?.outcome === "recovered") continue;
      }
      const underWay = recovering?.outcome === "under_way" ? recovering.transaction : undefined;
      if (underWay === undefined && !isOpenTo(settlement, payment, organization.id)) {
        await leases.giveUp(lease);
        return whyClosed(settlement, lease, recovering);
      }
      if (underWay === undefined && settlement.state !== "submitted") {
        if (leases.isTrusted(lease)) return hand(settlement, lease);
        // A process that stood still may have lost the lease to another one, which answered meanwhile.
        if (!(await leases.take(lease))) return whileUnderWay(await ledger.find(payment.id), lease);
        continue;
      }
      if (now() >= deadline) {
        await leases.giveUp(lease);
        return { kind: "pending", transaction: underWay ?? settlement.transactionHash };
      }
      await announced;
    }
  }

  function hand({ transactionHash }: Settlement, lease: Lease): SettleResult {
    return {
      kind: "success",
      transaction: transactionHash,
      delivery: {
        isDue: () => leases.isStillDue(lease),
        delivered: (kept) => leases.markDelivered(lease, kept),
        lost: () => leases.giveUp(lease),
      },
    };
  }
}

function refuse(invalid: Invalid): SettleResult {
  return { kind: "invalid", invalid };
}

/** The answer where a claimed authorization holds no success for this request. */
function whyClosed(
  settlement: Settlement,
  { payment, caller }: Lease,
  followUp: FollowUp | undefined,
): SettleResult {
  const { state, transactionHash } = settlement;
  const { id } = caller.organization;
  // Handed over before, and undecided again since its block has vanished.
  if (state === "submitted" && isOwn(settlement, payment, id)) {
    return { kind: "pending", transaction: transactionHash };
  }
  return refuse(refuseClosed(settlement, id, followUp));
}
