import { type BoundedMap, createBoundedMap } from "../util/cache.ts";
import type { Address, Hex } from "./hex.ts";

/** A payer's balance of an asset on a network, per organization: maxima verified for others are not counted. */
export type MaximaAccount = { organizationId: string; network: string; asset: Address; payer: Address };

/** A maximum to be counted; times are Unix seconds. */
export type Maximum = {
  /** The id of its settlement. */
  id: Hex;
  limit: bigint;
  /** Until when it can be settled. */
  last: bigint;
  /** The payer's balance, and the chain's time. */
  available: bigint;
  now: bigint;
  /**
   * True if the payment brings an approval that it needs. It is then not counted: it takes nothing away from others,
   * and of several payments with one approval only one can be settled.
   */
  bringsApproval: boolean;
};

/** Why a maximum is not covered. */
export type TooManyMaxima = {
  /** The settlements of the other maxima, whose limits sum up to `taken`. */
  ids: readonly Hex[];
  taken: bigint;
  /** Seconds until the first of the others is no longer counted. */
  retryAfterSeconds: number;
};

/**
 * The signed maxima (scheme “upto”) that verify has accepted and that are not settled yet. Each may be taken until its end, so
 * the balance must cover all of them together. They are counted in this process only, for {@link countedSeconds}. This is a
 * heuristic: payers can still move their tokens, and shops need not settle what they verify.
 */
export type OpenMaxima = {
  /** Counts a maximum. If the account's others leave too little for it, returns the reason and does not count it. */
  open(account: MaximaAccount, maximum: Maximum): TooManyMaxima | undefined;
  /** Forgets a maximum that was settled, or never will be. */
  close(account: MaximaAccount, id: Hex): void;
};

/** Shops settle what they verify within minutes, or never. */
const countedSeconds = 300n;

/** The most accounts, and maxima per account, that are counted; beyond that the oldest are forgotten. */
const mostAccounts = 100_000;
const mostOfAccount = 1_000;

type Open = Pick<Maximum, "id" | "limit"> & { end: bigint };

export function createOpenMaxima(): OpenMaxima {
  const accounts = createBoundedMap<string, BoundedMap<Hex, Open>>(mostAccounts);
  const keyOf = ({ organizationId, network, asset, payer }: MaximaAccount) =>
    [organizationId, network, asset, payer].join(" ").toLowerCase();

  return {
    open(account, { id, limit, last, available, now, bringsApproval }) {
      const key = keyOf(account);
      const open = accounts.get(key) ?? createBoundedMap<Hex, Open>(mostOfAccount);
      for (const one of open.values()) if (one.end < now) open.delete(one.id);
      const others = [...open.values()].filter((one) => one.id !== id);
      const taken = others.reduce((sum, one) => sum + one.limit, 0n);
      if (taken > 0n && taken + limit > available) {
        const secondsLeft = others.map((one) => Number(one.end - now));
        return { ids: others.map((one) => one.id), taken, retryAfterSeconds: Math.min(...secondsLeft) + 1 };
      }
      if (bringsApproval) return undefined;
      const counted = now + countedSeconds;
      open.set(id, { id, limit, end: last < counted ? last : counted });
      accounts.set(key, open);
      return undefined;
    },

    close(account, id) {
      const key = keyOf(account);
      const open = accounts.get(key);
      open?.delete(id);
      if (open?.size === 0) accounts.delete(key);
    },
  };
}
