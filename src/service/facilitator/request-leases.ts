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

/** One request's right to settle an authorization and to answer for it. */
export type Lease = {
  payment: SettleablePayment;
  caller: Caller;
  holder: string;
  /** When it was last taken, in unix milliseconds. */
  takenAt: number;
  /** True if it has been given up. */
  isOver: boolean;
};

/** A lease that was taken this long ago is made sure of before a success is handed over. */
const trustMs = 10_000;

/** Returns true if a settlement is of the lease's payment and organization, and may still give a success. */
export function isOpenTo(settlement: Settlement, { payment, caller }: Lease): boolean {
  return isOwn(settlement, payment, caller.organization.id) && isOpen(settlement);
}

/** Returns true if it is theirs and has failed, so that it may become a success only by being recovered. */
export function isOwnFailure(settlement: Settlement, { payment, caller }: Lease): boolean {
  return isOwn(settlement, payment, caller.organization.id) && settlement.state === "failed";
}

/** A lease that is still to be taken. */
export function newLease(payment: SettleablePayment, caller: Caller): Lease {
  return { payment, caller, holder: randomUUID(), takenAt: 0, isOver: false };
}

/** How requests of this process take their leases, and know whether they have them still. */
export type RequestLeases = {
  /** Takes a lease, or makes sure of it; false while another request has it. */
  take(lease: Lease): Promise<boolean>;
  /** Returns true if it was taken so lately that no other request can have it, even if this process has stood still. */
  isTrusted(lease: Lease): boolean;
  /** Returns true if a success is still this request's to give. An old lease is taken anew, and what became of it read again. */
  isStillDue(lease: Lease): Promise<boolean>;
  /** Records that its success was handed over, and the key that it is to be given again under, and gives it up. */
  markDelivered(lease: Lease, kept: KeptAnswer | undefined): Promise<void>;
  /** Gives it up without an answer, or with one that is no success. */
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
        // Taken after it was given up, it would be held, and renewed, for as long as the process lives.
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

/** One request of this process that settles a payment, until it has an answer. */
export type FirstRequest = { end(): void };

/** Requests of this process for payments that another of its requests is settling already. */
export type Repeats = {
  /**
   * Makes a request the first one of a payment; `key` names the payment and its organization. If there is a first one
   * already, waits up to `waitMs` for its end: undefined when it has not ended by then, when the signal aborts, or when
   * too many requests wait already. Asks neither the ledger nor the chain.
   */
  begin(key: string, waitMs: number, signal: AbortSignal): Promise<FirstRequest | undefined>;
};

/** Repeats of one payment that wait at a time: a buyer sends few, and a flood must not take the places of others. */
const mostWaiting = 32;

export function createRepeats(now: () => number): Repeats {
  const running = new Map<string, { ended?: AbortController; waiting: number }>();
  return {
    async begin(key, waitMs, signal) {
      const until = now() + waitMs;
      for (let first = running.get(key); first !== undefined; first = running.get(key)) {
        if (first.waiting >= mostWaiting || now() >= until || signal.aborted) return undefined;
        first.waiting++;
        // Made for the few payments that are repeated: it takes more than all the rest here.
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
