import { randomUUID } from "node:crypto";
import type { KeptAnswer, Ledger } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import { refusals } from "../../protocol/refusals.ts";
import { hasPaid, isOpen, isOwn } from "../../protocol/settlement-rules.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { poll, sleep } from "../../util/waiting.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { FacilitatorContext, Waiting } from "./context.ts";
import type { SettleablePayment } from "./payment.ts";
import { refuse, type SettleResult } from "./settle-result.ts";

/** The right of one request to settle an authorization and to answer for it. */
export type Lease = {
  payment: SettleablePayment;
  caller: Caller;
  holder: string;
  /** When it was last taken, in unix milliseconds. */
  takenAt: number;
  /** True if it has been given up. */
  isOver: boolean;
};

/** A lease older than this is confirmed before a success is handed over. */
const trustMs = 10_000;

/** Returns true if a settlement belongs to the payment and organization of the lease, and can still give a success. */
export function isOpenTo(settlement: Settlement, { payment, caller }: Lease): boolean {
  return isOwn(settlement, payment, caller.organization.id) && isOpen(settlement);
}

/** Returns true if it belongs to them and has failed, so that only a recovery can make it a success. */
export function isOwnFailure(settlement: Settlement, { payment, caller }: Lease): boolean {
  return isOwn(settlement, payment, caller.organization.id) && settlement.state === "failed";
}

/** A lease that has not been taken yet. */
export function newLease(payment: SettleablePayment, caller: Caller): Lease {
  return { payment, caller, holder: randomUUID(), takenAt: 0, isOver: false };
}

/** Takes the leases of this process's requests, and knows if they are still held. */
export type RequestLeases = {
  /** Takes or confirms a lease; false while another request holds it. */
  take(lease: Lease): Promise<boolean>;
  /** Returns true if it was taken so recently that no other request can hold it, even if this process was suspended. */
  isTrusted(lease: Lease): boolean;
  /** Returns true if this request may still give the success. Takes an old lease again, and rereads its settlement. */
  isStillDue(lease: Lease): Promise<boolean>;
  /** Records that its success was handed over, and the key under which it is given again, and gives up the lease. */
  markDelivered(lease: Lease, kept: KeptAnswer | undefined): Promise<void>;
  /** Gives it up without an answer, or with one that is not a success. */
  giveUp(lease: Lease): Promise<void>;
};

export function createRequestLeases(
  ledger: Pick<Ledger, "claims" | "leases">,
  now: () => number,
): RequestLeases {
  const isTrusted = ({ takenAt }: Lease) => now() - takenAt < trustMs;

  async function take(lease: Lease): Promise<boolean> {
    const askedAt = now();
    const isTaken = await ledger.leases.acquireLease(lease.payment.id, lease.holder);
    if (isTaken) lease.takenAt = askedAt;
    return isTaken;
  }

  function giveUp(lease: Lease): Promise<void> {
    lease.isOver = true;
    return ledger.leases.releaseLease(lease.payment.id, lease.holder);
  }

  return {
    take,
    giveUp,
    isTrusted,

    async isStillDue(lease) {
      const { payment } = lease;
      while (!lease.isOver && !isTrusted(lease)) {
        if (!(await take(lease))) return false;
        // A lease taken after it was given up would be held and renewed for as long as the process lives.
        if (lease.isOver) {
          await giveUp(lease);
          return false;
        }
        const settlement = await ledger.claims.find(payment.id);
        if (settlement === null || !hasPaid(settlement)) return false;
        if (!isOpenTo(settlement, lease)) return false;
      }
      return !lease.isOver;
    },

    markDelivered(lease, kept) {
      lease.isOver = true;
      return ledger.leases.markDelivered(lease.payment.id, lease.holder, kept);
    },
  };
}

/** The request of this process that is settling a payment; `end` is called when it has its answer. */
export type FirstRequest = { end(): void };

/** Queues requests for a payment that another request of this process is already settling. */
export type Repeats = {
  /**
   * Makes a request the first one for a payment; `key` identifies the payment and its organization. If there is a
   * first one already, waits up to `waitMs` for its end. Returns undefined if it has not ended by then, if the
   * signal aborts, or if too many requests wait already. Asks neither the ledger nor the chain.
   */
  begin(key: string, waitMs: number, signal: AbortSignal): Promise<FirstRequest | undefined>;
};

/** Repeats of one payment that wait at the same time: a buyer sends few, and a flood must not crowd out others. */
const mostWaiting = 32;

export function createRepeats(now: () => number): Repeats {
  const running = new Map<string, { ended?: AbortController; waiting: number }>();
  return {
    async begin(key, waitMs, signal) {
      const until = now() + waitMs;
      for (let first = running.get(key); first !== undefined; first = running.get(key)) {
        if (first.waiting >= mostWaiting || now() >= until || signal.aborted) return undefined;
        first.waiting++;
        // Created only for the few payments that are repeated: it costs more than everything else here.
        first.ended ??= new AbortController();
        await sleep(until - now(), AbortSignal.any([first.ended.signal, signal]));
        first.waiting--;
      }
      const own: { ended?: AbortController; waiting: number } = { waiting: 0 };
      running.set(key, own);
      return {
        end() {
          if (running.get(key) === own) running.delete(key);
          own.ended?.abort();
        },
      };
    },
  };
}

/** How long a repeat waits for the request before it, or for another instance's lease, and how often it checks. */
export const leaseWaitMs = 1_000;
const leasePollMs = 25;

/** The interval of the checks while it waits for another instance's lease to be renewed or to expire. */
const leaseSlowPollMs = 250;

/**
 * Takes the lease, or returns the answer if another request keeps it. Waits a little for a holder that may be about
 * to give it up because its own caller has just left. Otherwise a buyer who repeats a payment right after a lost
 * connection would be turned away.
 *
 * A holder in another instance may have died with that instance, in which case it never renews the lease. Until it
 * renews it or the lease expires, it is not known if another answer will come.
 *
 * @throws UndeterminedError when this is still open at the deadline, and nothing is claimed.
 */
export type AcquireSoon = (lease: Lease, waiting: Waiting) => Promise<SettleResult | undefined>;

export function createAcquireSoon(
  { ledger, now }: Pick<FacilitatorContext, "ledger" | "now">,
  leases: RequestLeases,
): AcquireSoon {
  return async (lease, { deadline, signal }) => {
    const { id } = lease.payment;
    const soon = now() + leaseWaitMs;
    let firstSeen: number | undefined;
    let settlement: Settlement | null = null;
    const look = async (): Promise<SettleResult | "acquired" | undefined> => {
      if (await leases.take(lease)) return "acquired";
      settlement = await ledger.claims.find(id);
      const mayOpen = settlement === null || isOpenTo(settlement, lease) || isOwnFailure(settlement, lease);
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
 * The answer to a request while another one holds the right to answer. The owner of a payment in flight is never
 * refused: its outcome is unknown, or on its way to the other request and perhaps lost there.
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
