import { randomUUID } from "node:crypto";
import type { KeptAnswer, Ledger } from "../../ledger/ledger.ts";
import type { Caller } from "../organizations/organizations.ts";
import { sleep } from "../relayer/poll.ts";
import type { SettleablePayment } from "./intake.ts";
import { hasPaid } from "./payment-binding.ts";
import { isOpenTo } from "./verify.ts";

/** One request's right to settle an authorization and to answer for it. */
export type Lease = {
  payment: SettleablePayment;
  caller: Caller;
  holder: string;
  /** When it was last taken, in unix milliseconds. */
  takenAt: number;
  /** Whether it has been given up. */
  isOver: boolean;
};

/** A lease that was taken this long ago is made sure of before a success is handed over. */
const trustMs = 10_000;

/** A lease that is still to be taken. */
export function newLease(payment: SettleablePayment, caller: Caller): Lease {
  return { payment, caller, holder: randomUUID(), takenAt: 0, isOver: false };
}

/** How requests of this process take their leases, and know whether they have them still. */
export type RequestLeases = {
  /** Takes a lease, or makes sure of it; false while another request has it. */
  take(lease: Lease): Promise<boolean>;
  /** Whether it was taken so lately that no other request can have it, even if this process has stood still. */
  isTrusted(lease: Lease): boolean;
  /** Whether a success is still this request's to give. An old lease is taken anew, and what became of it read again. */
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
      const { payment, caller } = lease;
      while (!lease.isOver && !isTrusted(lease)) {
        if (!(await take(lease))) return false;
        // Taken after it was given up, it would be held, and renewed, for as long as the process lives.
        if (lease.isOver) {
          await giveUp(lease);
          return false;
        }
        const settlement = await ledger.claims.find(payment.id);
        if (settlement === null || !hasPaid(settlement)) return false;
        if (!isOpenTo(settlement, payment, caller.organization.id)) return false;
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
