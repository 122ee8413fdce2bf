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
  /** True if its block has vanished from the chain. */
  hasVanished?: boolean;
  /** The attempt in that block: callers may have received its hash. */
  answered?: Hex | undefined;
};

/**
 * All attempts of one txNonce, of which the chain mines at most one.
 *
 * | State | Meaning | Authority |
 * |---|---|---|
 * | sent | no block is known to hold any of the attempts | the node |
 * | mined | a block holds one of them, but is not deep enough yet, or its receipt proves nothing | the receipt |
 * | draining | the txNonce was used without deciding its settlements, which move to others | a deep receipt, or the used txNonce |
 */
export type Slot = {
  txNonce: number;
  attempts: Attempt[];
  settlements: readonly Claim[];
  state: "sent" | "mined" | "draining";
  /** True if a block that decided it has vanished from the chain, so that it is in flight again. */
  hasVanished: boolean;
  /** The attempt in that block: callers may have received its hash. */
  answered: Hex | undefined;
  /** The time of the last broadcast of any attempt, in unix milliseconds. */
  lastSentAt: number;
  /** The time of the newest attempt's first broadcast, in unix milliseconds. */
  attemptedAt: number;
  /** When this process first knew of it, in unix milliseconds. */
  trackedAt: number;
  /** The maximum cost of any of its attempts, in wei; nodes reserve it from the account's gas money. */
  cost: bigint;
  /** Rounds in which it was sent again since nodes were last asked if they hold it. */
  rounds: number;
  /** How often its receipt reported success but proved nothing. */
  unproven: number;
  /** Since when enough endpoints report that, in unix milliseconds: it is mined, and only proof ends it. */
  unprovenSince?: number | undefined;
  /** It is not checked again before this time, in unix milliseconds. */
  lookAgainAt: number;
  /** How often no other endpoint confirmed the outcome that a receipt shows. */
  unconfirmed: number;
  /** How often another endpoint contradicted it. */
  contradicted: number;
  /** Since when the txNonce seems used by a foreign transaction, in unix milliseconds. */
  takenSince?: number | undefined;
};

/**
 * Returns true if this version of the service can decide a transaction. If not, a newer instance signed it and will
 * decide it; its bytes are still sent, since later transactions wait for it.
 */
export function isUnderstood({ settlements }: Pick<Slot, "settlements">, ways: WaysToPay): boolean {
  return settlements.every(({ method }) => ways.knows(method));
}

/** Checks during which other endpoints may lag behind the one that shows a receipt: about half a minute. */
const patienceLooks = 30;

/** Returns true if a receipt is unconfirmed for longer than endpoints lag, or if another endpoint contradicts it. */
export function isUnconfirmed({ unconfirmed, contradicted }: Slot): boolean {
  return unconfirmed >= patienceLooks || contradicted > 0;
}

/** The network with the contract that a claim was made for, which its transactions call and which alone proves them. */
export function networkOf<N extends Contract>(network: N, { contract }: Pick<Claim, "contract">): N {
  return contract === null ? network : withContract(network, contract);
}

/** A chain with the contract that a claim was made for; see {@link networkOf}. */
export function chainOf<C extends { readonly network: Contract }>(
  chain: C,
  claim: Pick<Claim, "contract">,
): C {
  const network = networkOf(chain.network, claim);
  return network === chain.network ? chain : { ...chain, network };
}

/** The call that settles a claim, on the network of {@link networkOf}. */
export function callOf(claim: Claim, network: Contract): SettleCall {
  const { id, method, asset, payer, amount, window, nonce, nonceSpace, payload, signature, recipient } =
    claim;
  const payTo = claim.payTo ?? networkOf(network, claim).facilitatorContract;
  const payment = { method, payer, payTo, asset, limit: claim.maximum ?? amount, window, nonce };
  return { payment: { ...payment, nonceSpace, signature, payload }, recipient, id, amount };
}

/** The builder codes that payments were sent with; only their signed transactions keep them. */
export function codesOf(attempts: readonly Pick<Attempt, "kind" | "raw">[]): SettleCall["codes"] {
  const sent = attempts.findLast(({ kind }) => kind === "settle");
  return sent && readCodes(readTransaction(sent.raw).data);
}

/**
 * Tells waiting requests that a settlement has concluded. The ledger remains the only record: an announcement only
 * means that it is worth reading again.
 */
export type Outcomes = {
  announce(ids: readonly Hex[]): void;
  /** Resolves at the next announcement of the id, after `timeoutMs`, or when `signal` aborts. */
  next(id: Hex, timeoutMs: number, signal: AbortSignal): Promise<void>;
};

/** Outcomes of this process. Conclusions of other instances are seen by reading the ledger when `next` times out. */
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
 * Stores the transactions of one account on one network and applies their outcomes: settles of an operator, or forwards
 * of the recoverer. The watcher treats both the same.
 */
export type TransactionStore = {
  /** Attempts whose txNonce is open, lowest txNonce first, each with its settlements. */
  open(): Promise<readonly Batch[]>;
  /** The txNonce after the last one that was taken. */
  next(): Promise<number>;
  /** Transactions that decided settlements, highest txNonce first. */
  concluded(range: TxNonceRange): Promise<readonly ConcludedTransaction[]>;
  /** Takes back conclusions whose block has vanished; {@link open} then returns their transactions again. */
  reopen(transactions: readonly ConcludedTransaction[]): Promise<void>;
  fillTxNonce: Ledger["outcomes"]["fillTxNonce"];
  addAttempt: Ledger["claims"]["addAttempt"];
  noteMined: Ledger["outcomes"]["noteMined"];
  /** Records what a mined transaction decided, and closes its txNonce. Recording it twice changes nothing. */
  conclude(mined: MinedTransaction, conclusions: readonly Conclusion[]): Promise<void>;
  /**
   * Sends settlements again whose txNonce was used without deciding them: by `mined`, one of their own transactions, or
   * by another sender if it is null. Resolves when that has begun or is recorded.
   */
  sendAgain(batch: Pick<Slot, "txNonce" | "settlements" | "attempts">, mined: Hex | null): Promise<void>;
};
