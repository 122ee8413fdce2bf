import { randomUUID } from "node:crypto";
import { ForbiddenError, UndeterminedError } from "../errors.ts";
import type { Settlement } from "../ledger/settlement.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { Hex } from "../protocol/hex.ts";
import { problemDetails } from "../protocol/problems.ts";
import type { Invalid } from "../protocol/reasons.ts";
import { refusals } from "../protocol/refusals.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { poll } from "../relayer/poll.ts";
import type { FollowUp } from "../relayer/recovery.ts";
import { claimPayment, type Waiting } from "./claim-payment.ts";
import type { FacilitatorContext } from "./context.ts";
import { createGasBudget } from "./gas-budget.ts";
import { checkLimits, createPaymentIntake, recipientFor, requireScope } from "./intake.ts";
import type { SettleablePayment } from "./payment.ts";
import { publishChecksOf } from "./publish-checks.ts";
import { verifySignature } from "./signature.ts";
import { isOpenTo, isOwnFailure } from "./verify.ts";

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
  /** The answer was written. */
  delivered(): Promise<void>;
  /** The answer could not be written: the next identical request gets it. */
  lost(): Promise<void>;
};

/**
 * Settles a payment. Throws when it could not be told, or when the key may not.
 * `signal` aborts when no caller waits for the answer any more: what is not signed yet is dropped, and the right to the
 * answer is given up at once, so that the same payment sent again finds it free.
 */
export type Settle = (request: PaymentRequest, caller: Caller, signal: AbortSignal) => Promise<SettleResult>;

/** One request's right to settle an authorization and to answer for it. */
type Lease = { payment: SettleablePayment; caller: Caller; holder: string };

/** Between two looks at the ledger while waiting for an outcome that another instance may conclude. */
const ledgerPollMs = 1_000;

/** How long a repeat waits for the lease of the request before it, and how often it tries. */
const leaseWaitMs = 1_000;
const leasePollMs = 25;

/** The same while it waits for the lease of another instance to be renewed or to run out. */
const leaseSlowPollMs = 250;

/** A lease that was taken this long ago is made sure of before a success is handed over. */
const leaseTrustMs = 10_000;

/**
 * Makes settle. All checks run under a leased lock on the authorization; then the relayer claims it for the
 * organization together with the signed transaction, and the lease becomes the right to the answer.
 */
export function createSettle(context: FacilitatorContext): Settle {
  const { networks, recoveries, ledger, outcomes, now, settleWaitMs, serviceId } = context;
  const intake = createPaymentIntake(networks);
  const gasBudget = createGasBudget(ledger, now);

  return async (request, caller, signal) => {
    const waiting: Waiting = { now, signal, deadline: now() + settleWaitMs[request.x402Version] };
    const checked = publishChecksOf(request, serviceId);
    const read = intake(request, checked);
    if ("reason" in read) return refuse(read);
    const { payment, chain } = read;
    requireScope(caller, "settle");
    const recipient = recipientFor(caller, payment.network.name);
    if (recipient === undefined) {
      throw new ForbiddenError(problemDetails.lacksRecipient(payment.network.name));
    }
    const limited = checked("minimumIsReached", checkLimits(caller, payment));
    if (limited !== undefined) return refuse(limited);
    const proven = await verifySignature(payment, chain);
    if ("reason" in proven) return refuse(checked("signatureHolds", proven));
    checked("signatureHolds", undefined);

    const lease: Lease = { payment, caller, holder: randomUUID() };
    const taken = await acquireSoon(lease, waiting);
    if (taken !== undefined) {
      if (taken.kind === "invalid") checked("authorizationIsFree", taken.invalid);
      return taken;
    }
    try {
      if ((await ledger.find(payment.id)) === null) {
        checked("authorizationIsFree", undefined);
        const refusal = await claimPayment(
          { ...read, ...proven, caller, recipient, checked },
          { ...waiting, gasBudget },
        );
        if (refusal !== undefined) {
          await ledger.releaseLease(payment.id, lease.holder);
          return refuse(refusal);
        }
      }
      return await awaitOutcome(lease, waiting);
    } catch (error) {
      await ledger.releaseLease(payment.id, lease.holder);
      throw error;
    }
  };

  /**
   * Takes the lease; gives the answer where it cannot be had. Waits a little for a holder who may be about to give it
   * up, because its own caller has just left: without that a buyer who repeats a payment right after a lost connection
   * would be turned away.
   *
   * A holder in another instance may have died with it. That shows only in that it renews nothing: until it does, or
   * its lease runs out, nobody knows whether there will be another answer than this one.
   *
   * @throws UndeterminedError when it has not shown by the deadline, and nothing is claimed.
   */
  async function acquireSoon(
    { payment, caller, holder }: Lease,
    { deadline, signal }: Waiting,
  ): Promise<SettleResult | undefined> {
    const { id } = payment;
    const soon = now() + leaseWaitMs;
    let firstSeen: number | undefined;
    let settlement: Settlement | null = null;
    const look = async (): Promise<SettleResult | "acquired" | undefined> => {
      if (await ledger.acquireLease(id, holder)) return "acquired";
      settlement = await ledger.find(id);
      const mayOpen = settlement === null || isOpenTo(settlement, payment, caller.organization.id);
      const held = mayOpen && now() >= soon ? await ledger.findLease(id) : null;
      firstSeen ??= held?.expiresAt;
      const lives = held !== null && (held.isOwn || held.expiresAt !== firstSeen);
      if (!mayOpen || lives) return refuse(whyTaken(settlement, caller, refusals.beingSettled()));
      return undefined;
    };
    const ended = await poll(look, {
      every: () => (now() < soon ? leasePollMs : leaseSlowPollMs),
      until: () => now() >= deadline,
      signal,
    });
    return ended === "acquired" ? undefined : (ended ?? giveUp(settlement));
  }

  function giveUp(settlement: Settlement | null): SettleResult {
    if (settlement !== null) return { kind: "pending", transaction: settlement.transactionHash };
    throw new UndeterminedError(
      "Another request is settling this authorization, or has died over it; ask again",
    );
  }

  /** Waits for the outcome of what is in the ledger, and answers if this request may. */
  async function awaitOutcome(lease: Lease, { deadline, signal }: Waiting): Promise<SettleResult> {
    const { payment, caller, holder } = lease;
    let leasedAt = now();
    for (;;) {
      if (signal.aborted) {
        const cutShort = await ledger.find(payment.id);
        if (cutShort === null || !isOpenTo(cutShort, payment, caller.organization.id)) {
          throw new UndeterminedError("The wait for the outcome was cut short; ask again");
        }
        // Servers of version 2 ask again for what is pending, and so find another instance, or the next one.
        await ledger.releaseLease(payment.id, holder);
        return { kind: "pending", transaction: cutShort.transactionHash };
      }
      // Subscribed before the ledger is read, so that no conclusion falls between the two.
      const announced = outcomes.next(
        payment.id,
        Math.max(0, Math.min(ledgerPollMs, deadline - now())),
        signal,
      );
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
        await ledger.releaseLease(payment.id, holder);
        return refuse(whyTaken(settlement, caller, refusals.usedHere(), recovering));
      }
      if (underWay === undefined && settlement.state !== "submitted") {
        if (now() - leasedAt < leaseTrustMs) return hand(settlement, holder);
        // A process that stood still may have lost the lease to another one, which answered meanwhile.
        if (!(await ledger.acquireLease(payment.id, holder))) {
          return refuse(whyTaken(settlement, caller, refusals.usedHere()));
        }
        leasedAt = now();
        continue;
      }
      if (now() >= deadline) {
        await ledger.releaseLease(payment.id, holder);
        return { kind: "pending", transaction: underWay ?? settlement.transactionHash };
      }
      await announced;
    }
  }

  function hand({ id, transactionHash }: Settlement, holder: string): SettleResult {
    return {
      kind: "success",
      transaction: transactionHash,
      delivery: {
        delivered: () => ledger.markDelivered(id, holder),
        lost: () => ledger.releaseLease(id, holder),
      },
    };
  }
}

function refuse(refusal: Invalid): SettleResult {
  return { kind: "invalid", invalid: refusal };
}

/** Why an authorization that is taken gives no success to this request. Only its owner learns the hash. */
function whyTaken(
  settlement: Settlement | null,
  caller: Caller,
  otherwise: Invalid,
  recovering?: FollowUp,
): Invalid {
  if (settlement === null || settlement.organizationId !== caller.organization.id) {
    return otherwise;
  }
  const { state, transactionHash } = settlement;
  const later =
    recovering?.outcome === "queued"
      ? "; somebody else submitted the authorization, and its value waits to be forwarded"
      : "";
  const refusal: Record<typeof state, Invalid> = {
    submitted: refusals.underWay(transactionHash),
    settled: refusals.settledBefore(transactionHash),
    recovered: refusals.settledBefore(transactionHash),
    failed: refusals.failed(transactionHash, `${settlement.failure ?? "no reason given"}${later}`),
  };
  return refusal[state];
}
