import { randomUUID } from "node:crypto";
import type { KeptAnswer, Ledger } from "../../ledger/ledger.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { SettleablePayment } from "./payment.ts";
import { hasPaid } from "./payment-identifier.ts";
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
