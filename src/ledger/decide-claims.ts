import type { ClaimOutcome, ClaimRequest } from "./ledger.ts";
import { lowerCase } from "./rows.ts";

/** What counts against a payer's balance beside the requests themselves. */
export type Reserved = {
  asset: string;
  payer: string;
  amount: bigint;
  /** The block that took it from the balance, as far as is known; null before. */
  minedIn: bigint | null;
};

type Account = {
  unmined: bigint;
  mined: { amount: bigint; block: bigint }[];
  /** What was mined after a block, once it was asked for: payments that are claimed together mostly share theirs. */
  minedAfter: Map<bigint, bigint>;
};

/**
 * Decides which payments may be claimed, in the given order, each against the balance it brings:
 *
 * - `taken`: its id is in the ledger, or an earlier request of the same call got it;
 * - `over_balance`: amount + unmined > balance, where *unmined* are the payer's settlements that no block is known to
 *   hold, and the earlier requests of the same call that were let through;
 * - `stale_balance`: not over, but amount + unmined + just mined > balance, where *just mined* are settlements in
 *   blocks after `balanceBlock`. The balance may include what they took, so that nothing can be said before it is
 *   read again;
 * - `claimed` otherwise.
 */
export function decideClaims(
  requests: readonly ClaimRequest[],
  takenIds: ReadonlySet<string>,
  reserved: readonly Reserved[],
): ClaimOutcome[] {
  const taken = new Set(takenIds);
  const accounts = new Map<string, Account>();
  const accountOf = (asset: string, payer: string) => {
    const key = `${asset} ${payer}`;
    let account = accounts.get(key);
    if (account === undefined) {
      account = { unmined: 0n, mined: [], minedAfter: new Map() };
      accounts.set(key, account);
    }
    return account;
  };
  for (const { asset, payer, amount, minedIn } of reserved) {
    const account = accountOf(asset, payer);
    if (minedIn === null) account.unmined += amount;
    else account.mined.push({ amount, block: minedIn });
  }

  return requests.map(({ id, asset, payer, amount, balance, balanceBlock }) => {
    if (taken.has(lowerCase(id))) return "taken";
    const account = accountOf(lowerCase(asset), lowerCase(payer));
    const needed = account.unmined + amount;
    if (needed > balance) return "over_balance";
    if (needed + minedAfter(account, balanceBlock) > balance) return "stale_balance";
    account.unmined = needed;
    taken.add(lowerCase(id));
    return "claimed";
  });
}

function minedAfter({ mined, minedAfter }: Account, balanceBlock: bigint): bigint {
  let sum = minedAfter.get(balanceBlock);
  if (sum === undefined) {
    sum = 0n;
    for (const { amount, block } of mined) if (block > balanceBlock) sum += amount;
    minedAfter.set(balanceBlock, sum);
  }
  return sum;
}
