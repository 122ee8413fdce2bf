import type { Settlement } from "../../ledger/settlement.ts";
import { refusals } from "../../protocol/refusals.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { poll } from "../relayer/poll.ts";
import type { FacilitatorContext, Waiting } from "./context.ts";
import type { Lease, RequestLeases } from "./request-leases.ts";
import { refuse, type SettleResult } from "./settle-result.ts";
import { isOpenTo, isOwn, isOwnFailure } from "./verify.ts";

/** How long a repeat waits for the request before it, or for the lease of another instance's, and how often it tries. */
export const leaseWaitMs = 1_000;
const leasePollMs = 25;

/** The same while it waits for the lease of another instance to be renewed or to run out. */
const leaseSlowPollMs = 250;

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
export type AcquireSoon = (lease: Lease, waiting: Waiting) => Promise<SettleResult | undefined>;

export function createAcquireSoon(
  { ledger, now }: Pick<FacilitatorContext, "ledger" | "now">,
  leases: RequestLeases,
): AcquireSoon {
  return async (lease, { deadline, signal }) => {
    const { payment, caller } = lease;
    const { id } = payment;
    const soon = now() + leaseWaitMs;
    let firstSeen: number | undefined;
    let settlement: Settlement | null = null;
    const look = async (): Promise<SettleResult | "acquired" | undefined> => {
      if (await leases.take(lease)) return "acquired";
      settlement = await ledger.claims.find(id);
      const mayOpen =
        settlement === null ||
        isOpenTo(settlement, payment, caller.organization.id) ||
        isOwnFailure(settlement, payment, caller.organization.id);
      const held = mayOpen && now() >= soon ? await ledger.leases.findLease(id) : null;
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
  };
}

/**
 * The answer to a request while another one has the right to the answer. To its owner a payment under way is never
 * refused: what becomes of it is not known, or on its way to the other request and perhaps lost there.
 *
 * @throws UndeterminedError while nothing is claimed.
 */
export function whileUnderWay(settlement: Settlement | null, { payment, caller }: Lease): SettleResult {
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
