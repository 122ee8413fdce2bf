import { type BoundedMap, createBoundedMap } from "../util/cache.ts";
import type { Address, Hex } from "./hex.ts";

/** A payer's balance of an asset on a network. */
export type MaximaAccount = { network: string; asset: Address; payer: Address };

/** A maximum that asks to be counted, unix seconds. */
export type Maximum = {
  /** Of its settlement. */
  id: Hex;
  limit: bigint;
  /** Until when it can be settled. */
  last: bigint;
  /** What the payer can pay, and the chain's time. */
  available: bigint;
  now: bigint;
};

/**
 * What payers of scheme “upto” have signed and was verified, but not settled yet: any of it may be taken until its end, so that one
 * balance must hold all of it. It is counted in this process alone, and a guess: payers can move their tokens all the same.
 */
export type OpenMaxima = {
  /** Counts a maximum, and says whether it is covered together with the others of its account; one that is not is left out. */
  open(account: MaximaAccount, maximum: Maximum): boolean;
  /** Forgets one, since it was settled, or never will be. */
  close(account: MaximaAccount, id: Hex): void;
};

/** The most accounts, and maxima of one account, that are counted; beyond that the oldest are forgotten. */
const mostAccounts = 100_000;
const mostOfAccount = 1_000;

type Open = Pick<Maximum, "id" | "limit" | "last">;

export function createOpenMaxima(): OpenMaxima {
  const accounts = createBoundedMap<string, BoundedMap<Hex, Open>>(mostAccounts);
  const keyOf = ({ network, asset, payer }: MaximaAccount) => `${network} ${asset} ${payer}`.toLowerCase();

  return {
    open(account, { id, limit, last, available, now }) {
      const key = keyOf(account);
      const open = accounts.get(key) ?? createBoundedMap<Hex, Open>(mostOfAccount);
      let others = 0n;
      for (const one of open.values()) {
        if (one.last < now) open.delete(one.id);
        else if (one.id !== id) others += one.limit;
      }
      if (others + limit > available) return false;
      open.set(id, { id, limit, last });
      accounts.set(key, open);
      return true;
    },

    close(account, id) {
      const key = keyOf(account);
      const open = accounts.get(key);
      open?.delete(id);
      if (open?.size === 0) accounts.delete(key);
    },
  };
}
