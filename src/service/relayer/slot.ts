import type { Conclusion, Ledger } from "../../ledger/ledger.ts";
import type {
  Attempt,
  Claim,
  ConcludedTransaction,
  MinedTransaction,
  TxNonceRange,
} from "../../ledger/settlement.ts";
import type { Contract } from "../../methods/on-chain/batch-transactions.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { readCodes } from "../../protocol/builder-code.ts";
import { withContract } from "../../protocol/checks.ts";
import type { Hex } from "../../protocol/hex.ts";
import { readTransaction } from "../../protocol/signed-transaction.ts";

/** A stored transaction and its settlements. */
export type Batch = {
  attempt: Attempt;
  settlements: readonly Claim[];
  /** True if a block held it that has vanished from the chain. */
  hasVanished?: boolean;
  /** The attempt that was in it: callers may have been answered with its hash. */
  answered?: Hex | undefined;
};

/**
 * All attempts of one txNonce, of which the chain mines at most one.
 *
 * | State | Meaning | Authority |
 * |---|---|---|
 * | sent | no block is known to hold any of the attempts | the node |
 * | mined | a block holds one of them, not deep enough yet, or its receipt proves nothing | the receipt |
 * | draining | decided by a transaction that says nothing of them: its settlements move to other txNonces | the receipt, deep enough, or that the txNonce is taken |
 */
export type Slot = {
  txNonce: number;
  attempts: Attempt[];
  settlements: readonly Claim[];
  state: "sent" | "mined" | "draining";
  /** True if a block that decided it has vanished from the chain, so that it is under way for a second time. */
  hasVanished: boolean;
  /** The attempt that was in that block: callers may have been answered with its hash. */
  answered: Hex | undefined;
  /** Unix milliseconds of the last broadcast, of any attempt. */
  lastSentAt: number;
  /** Unix milliseconds of the newest attempt's first broadcast. */
  attemptedAt: number;
  /** Unix milliseconds since when this process knows of it. */
  trackedAt: number;
  /** The most that any of its attempts may cost, in wei: what nodes hold back of the account's gas money. */
  cost: bigint;
  /** Rounds in which it was sent again since it was last looked up whether any node holds it. */
  rounds: number;
  /** How often its receipt said success and proved nothing. */
  unproven: number;
  /** Unix milliseconds since when as many endpoints say so as a failure takes: it is mined, and only proof ends it. */
  unprovenSince?: number | undefined;
  /** Unix milliseconds before which it is not looked at again. */
  lookAgainAt: number;
  /** How often no other endpoint confirmed what a receipt says of its payments. */
  unconfirmed: number;
  /** How often another endpoint said something else. */
  contradicted: number;
  /** Unix milliseconds since when the txNonce seems taken by a transaction that is none of ours. */
  takenSince?: number | undefined;
};

/**
 * Returns true if this version of the service can tell what became of a transaction. Another instance of a later version, which
 * signed it, decides it; its bytes are sent all the same, since those after it wait for it.
 */
export function isUnderstood({ settlements }: Pick<Slot, "settlements">, ways: WaysToPay): boolean {
  return settlements.every(({ method }) => ways.knows(method));
}

/** Looks for which other endpoints may be behind the one that shows a receipt: about half a minute. */
const patienceLooks = 30;

/** Returns true if a receipt's word stands alone for longer than endpoints are behind one another, or against another's. */
export function isUnconfirmed({ unconfirmed, contradicted }: Slot): boolean {
  return unconfirmed >= patienceLooks || contradicted > 0;
}

/** The network with the contract that a claim was made for: its transactions go there, and only that contract proves them. */
export function networkOf<N extends Contract>(network: N, { contract }: Pick<Claim, "contract">): N {
  return contract === null ? network : withContract(network, contract);
}

/** The same of a chain, for what asks it about a claim. */
export function chainOf<C extends { readonly network: Contract }>(
  chain: C,
  claim: Pick<Claim, "contract">,
): C {
  const network = networkOf(chain.network, claim);
  return network === chain.network ? chain : { ...chain, network };
}

/** The payment of a claim, as its payment method takes it on the network of {@link networkOf}. */
export function callOf(claim: Claim, network: Contract): SettleCall {
  const { id, method, asset, payer, amount, window, nonce, nonceSpace, payload, signature, recipient } =
    claim;
  const payTo = claim.payTo ?? networkOf(network, claim).facilitatorContract;
  const payment = { method, payer, payTo, asset, limit: claim.maximum ?? amount, window, nonce };
  return { payment: { ...payment, nonceSpace, signature, payload }, recipient, id, amount };
}

/** The builder codes that payments were sent with: only their signed transactions keep them. */
export function codesOf(attempts: readonly Pick<Attempt, "kind" | "raw">[]): SettleCall["codes"] {
  const sent = attempts.findLast(({ kind }) => kind === "settle");
  return sent && readCodes(readTransaction(sent.raw).data);
}

/**
 * Tells waiting requests that a settlement has concluded. The ledger stays the only record: what is announced here
 * is that it is worth reading again.
 */
export type Outcomes = {
  announce(ids: readonly Hex[]): void;
  /** Resolves at the next announcement of the id, after `timeoutMs`, or when `signal` aborts. */
  next(id: Hex, timeoutMs: number, signal: AbortSignal): Promise<void>;
};

/** Outcomes of this process. Other instances' conclusions are seen by reading the ledger when `next` times out. */
export function createOutcomes(): Outcomes {
  const waiting = new Map<Hex, Set<() => void>>();
  return {
    announce(ids) {
      for (const id of ids) {
        for (const wake of waiting.get(id) ?? []) wake();
      }
    },
    next(id, timeoutMs, signal) {
      if (signal.aborted) return Promise.resolve();
      const { promise, resolve } = Promise.withResolvers<void>();
      const wakers = waiting.get(id) ?? new Set();
      waiting.set(id, wakers.add(resolve));
      const timer = setTimeout(resolve, timeoutMs);
      const leave = () => resolve();
      signal.addEventListener("abort", leave);
      return promise.finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", leave);
        wakers.delete(resolve);
        if (wakers.size === 0) waiting.delete(id);
      });
    },
  };
}

/**
 * Where the transactions of one account on one network are kept, and what their outcomes mean: settles of an operator,
 * or forwards of the recoverer. The watcher drives both in the same way.
 */
export type TransactionStore = {
  /** Attempts whose txNonce is open, lowest txNonce first, each with its settlements. */
  open(): Promise<readonly Batch[]>;
  /** The txNonce after the last one that was taken. */
  next(): Promise<number>;
  /** Transactions that decided settlements, highest txNonce first. */
  concluded(range: TxNonceRange): Promise<readonly ConcludedTransaction[]>;
  /** Takes conclusions back whose block has vanished from the chain; {@link open} gives their transactions from then on. */
  reopen(transactions: readonly ConcludedTransaction[]): Promise<void>;
  fillTxNonce: Ledger["outcomes"]["fillTxNonce"];
  addAttempt: Ledger["claims"]["addAttempt"];
  noteMined: Ledger["outcomes"]["noteMined"];
  /** Records what a mined transaction decided, and closes its txNonce. Recording it twice changes nothing. */
  conclude(mined: MinedTransaction, conclusions: readonly Conclusion[]): Promise<void>;
  /**
   * Has settlements sent again whose txNonce was taken without deciding them: by `mined`, one of their own
   * transactions, or, where that is null, by one of another sender. Resolves when that is under way or recorded.
   */
  sendAgain(batch: Pick<Slot, "txNonce" | "settlements" | "attempts">, mined: Hex | null): Promise<void>;
};
