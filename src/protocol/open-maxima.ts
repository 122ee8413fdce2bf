import { type BoundedMap, createBoundedMap } from "../util/cache.ts";
import type { Address, Hex } from "./hex.ts";

/** A payer's balance of an asset on a network, as one organization has payments of it verified: others' say nothing to it. */
export type MaximaAccount = { organizationId: string; network: string; asset: Address; payer: Address };

/** A maximum that asks to be counted, unix seconds. */
export type Maximum = {
  /** Of its settlement. */
  id: Hex;
  limit: bigint;
  /** Until when it can be settled. */
  last: bigint;
  /** The payer's balance, and the chain's time. */
  available: bigint;
  now: bigint;
  /**
   * True if the payment brings an approval that is needed. It is not counted then: it takes nothing of what others may take, and of
   * several with one approval one can be settled.
   */
  bringsApproval: boolean;
};

/** Why a maximum is not covered. */
export type TooManyMaxima = {
  /** The settlements of the others, whose limits are `taken` together. */
  ids: readonly Hex[];
  taken: bigint;
  /** Until the first of the others is not counted any more. */
  retryAfterSeconds: number;
};

/**
 * The maxima that payers of scheme “upto” have signed and verify has accepted, not settled yet: any may be taken until its end, so that one
 * balance must hold all of it. It is counted in this process alone, for {@link countedSeconds}, and a guess: payers can move their
 * tokens all the same, and shops settle nothing of what they verify.
 */
export type OpenMaxima = {
  /** Counts a maximum; or says why it is not covered together with the others of its account, and leaves it out. */
  open(account: MaximaAccount, maximum: Maximum): TooManyMaxima | undefined;
  /** Forgets one, since it was settled, or never will be. */
  close(account: MaximaAccount, id: Hex): void;
};

/** Shops settle what they verify within minutes, or never. */
const countedSeconds = 300n;

/** The most accounts, and maxima of one account, that are counted; beyond that the oldest are forgotten. */
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
