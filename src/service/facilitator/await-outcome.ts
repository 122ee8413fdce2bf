import type { Settlement } from "../../ledger/settlement.ts";
import { UndeterminedError } from "../../util/errors.ts";
import type { FollowUp } from "../relayer/recovery.ts";
import type { FacilitatorContext, Waiting } from "./context.ts";
import { refuseClosed } from "./earlier-use.ts";
import { type Lease, type RequestLeases, whileUnderWay } from "./request-leases.ts";
import { refuse, type SettleResult, successOf } from "./settle-result.ts";
import { isOpenTo, isOwn, isOwnFailure } from "./verify.ts";

/** Between two looks at the ledger while waiting for an outcome that another instance may conclude. */
const ledgerPollMs = 1_000;

/**
 * Waits for the outcome of what is in the ledger, and answers if this request may. What has just been claimed is not
 * looked up before its outcome is announced: it is on its way to the node.
 */
export type AwaitOutcome = (
  lease: Lease,
  waiting: Waiting,
  options: { isFresh: boolean },
) => Promise<SettleResult>;

export function createAwaitOutcome(
  {
    ledger,
    outcomes,
    recoveries,
    now,
  }: Pick<FacilitatorContext, "ledger" | "outcomes" | "recoveries" | "now">,
  leases: RequestLeases,
): AwaitOutcome {
  /** The answer where the service stops, or the caller leaves. */
  async function cutShort(lease: Lease): Promise<SettleResult> {
    const { payment, caller } = lease;
    const settlement = await ledger.claims.find(payment.id);
    if (settlement === null || !isOpenTo(settlement, payment, caller.organization.id)) {
      throw new UndeterminedError(
        "The service stopped before the outcome of the payment was known; send the same payment again",
      );
    }
    // Servers of version 2 ask again for what is pending, and so find another instance, or the next one.
    await leases.giveUp(lease);
    return { kind: "pending", transaction: settlement.transactionHash };
  }

  /**
   * What follows a failure of this request's payment, if it is one; `unknown` while the chain cannot be asked.
   *
   * @throws UndeterminedError where that lasts until the deadline
   */
  async function followUp(
    settlement: Settlement,
    { payment, caller }: Lease,
    deadline: number,
  ): Promise<FollowUp | undefined | "unknown"> {
    if (!isOwnFailure(settlement, payment, caller.organization.id)) return undefined;
    try {
      return await recoveries.get(payment.network.name)?.consider(payment.id);
    } catch (error) {
      // Whether it failed for good is not known as long as the chain cannot be asked.
      if (now() >= deadline || !(error instanceof UndeterminedError)) throw error;
      return "unknown";
    }
  }

  return async (lease, { deadline, signal }, { isFresh }) => {
    const { payment, caller } = lease;
    const { id: organizationId } = caller.organization;
    let isWorthReading = !isFresh;
    for (;;) {
      if (signal.aborted) return cutShort(lease);
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
      const settlement = await ledger.claims.find(payment.id);
      if (settlement === null) throw new Error("a claimed settlement is missing from the ledger");
      const recovering = await followUp(settlement, lease, deadline);
      if (recovering === "unknown") {
        await announced;
        continue;
      }
      if (recovering?.outcome === "recovered") continue;
      const underWay = recovering?.outcome === "under_way" ? recovering.transaction : undefined;
      if (underWay === undefined && !isOpenTo(settlement, payment, organizationId)) {
        await leases.giveUp(lease);
        return whyClosed(settlement, lease, recovering);
      }
      if (underWay === undefined && settlement.state !== "submitted") {
        if (leases.isTrusted(lease)) return handOver(settlement, lease, leases);
        // A process that stood still may have lost the lease to another one, which answered meanwhile.
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
