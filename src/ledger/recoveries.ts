import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Attempt, ConcludedTransaction, Settlement, SignedAttempt, TxNonceRange } from "./settlement.ts";

/** The location on chain of the token's `Transfer` by which a direct submission paid the contract. */
export type RecoveryProof = { transactionHash: Hex; logIndex: number; blockNumber: bigint };

/**
 * | State | Meaning | Authority |
 * |---|---|---|
 * | queued | a direct submission was proven; no signed forward for it can be mined any more | the ledger |
 * | sent | a forward is signed; its outcome is not known | the ledger |
 * | forwarded | mined, with our `Forwarded` in the receipt; the settlement is `recovered` | the chain |
 */
export const recoveryStates = ["queued", "sent", "forwarded"] as const;
export type RecoveryState = (typeof recoveryStates)[number];

export type Recovery = {
  proof: RecoveryProof;
  state: RecoveryState;
  /** The signer of the newest forward, and its txNonce; null before the first. */
  recoverer: Address | null;
  txNonce: number | null;
  /** Why the last try failed, for the operator. */
  problem: string | null;
  queuedAt: number;
};

/** A failed settlement, with what has been learned about its authorization since. */
export type FailedSettlement = {
  settlement: Settlement;
  /** A block by which the authorization was used, until it is known how; null while unused. */
  usedByBlock: bigint | null;
  /** Unix milliseconds; null if there is nothing more to find, or a forward is being watched instead. */
  nextLookAt: number | null;
  recovery: Recovery | null;
};

/** The mined transaction that used up a forward's txNonce. */
export type MinedForward = {
  chainId: number;
  recoverer: Address;
  txNonce: number;
  hash: Hex;
  blockNumber: bigint;
  blockHash: Hex;
};

/**
 * Follows up on failed settlements. A failure is checked until its authorization cannot be submitted any more. A
 * direct submission queues it, a signed forward takes it out of the queue, and the chain decides the outcome.
 */
export type Recoveries = {
  /** Returns a failed settlement with its follow-up; null unless it is failed. */
  findFailure(id: Hex): Promise<FailedSettlement | null>;

  /**
   * Takes the failures on a chain that are due for a check, longest overdue first. They are postponed until
   * `nextLookAt` (unix milliseconds), so that no other instance checks them meanwhile, but one does if this one dies.
   */
  takeDueFailures(chainId: number, limit: number, nextLookAt: number): Promise<readonly FailedSettlement[]>;

  /** Returns the open failures on a chain, due or not, ordered by id, starting after `after`. */
  openFailures(chainId: number, limit: number, after: Hex | null): Promise<readonly FailedSettlement[]>;

  /** Records the result of a check. Without a `nextLookAt` it was the last one. */
  noteLook(id: Hex, look: { usedByBlock: bigint | null; nextLookAt: number | null }): Promise<void>;

  /**
   * Queues a failure for recovery. If it is queued already, the new proof replaces the old one: blocks may have been
   * replaced. If it is sent or done, nothing changes.
   *
   * @throws KitError when the proof belongs to another settlement.
   */
  queueRecovery(id: Hex, proof: RecoveryProof): Promise<void>;

  /**
   * Turns a failure into a success, because a transaction other than the watched one has paid it: `settled` directly,
   * or `recovered` by a forward. Returns false and changes nothing if it is not failed any more, or its forward is
   * being watched.
   */
  correctFailure(
    id: Hex,
    state: "settled" | "recovered",
    mined: { hash: Hex; blockNumber: bigint; blockHash: Hex },
  ): Promise<boolean>;

  /** Takes a failure out of the queue, because its proof has vanished from the chain. */
  dropRecovery(id: Hex): Promise<void>;

  /** Records why a queued recovery could not be sent, and when to retry (unix milliseconds). */
  postponeRecovery(id: Hex, problem: string, nextLookAt: number): Promise<void>;

  /**
   * Introduces a recoverer, or raises its next txNonce to the number of its mined transactions: its key may be used by
   * hand too.
   */
  introduceRecoverer(chainId: number, recoverer: Address, minedTransactions: number): Promise<void>;

  /**
   * Stores the signed transaction that pays out a queued recovery, with its txNonce. Returns null without signing if
   * it is not queued, because another instance has sent it. `sign` must not use the ledger, which waits for it.
   */
  sendForward(
    recoverer: { chainId: number; address: Address },
    id: Hex,
    sign: (txNonce: number) => Promise<SignedAttempt>,
  ): Promise<{ attempt: Attempt; settlements: readonly Settlement[] } | null>;

  /** Returns forwards with an open txNonce, oldest txNonce first, each with the settlement it pays out. */
  openForwards(
    chainId: number,
    recoverer: Address,
  ): Promise<readonly { attempt: Attempt; settlements: readonly Settlement[] }[]>;

  /**
   * Records that a forward was mined and paid: the settlement is `recovered`, and its success undelivered. Recording
   * it twice changes nothing.
   */
  concludeForward(mined: MinedForward, id: Hex): Promise<void>;

  /**
   * Queues a recovery again after its forward failed: it was mined and reverted, or, if `hash` is null, another
   * transaction used up its txNonce. Does nothing unless it is sent with that txNonce.
   */
  requeueForward(
    ended: { chainId: number; recoverer: Address; txNonce: number; hash: Hex | null },
    id: Hex,
    problem: string,
    nextLookAt: number,
  ): Promise<void>;

  /** Returns transactions of a recoverer that paid out recoveries, highest txNonce first. */
  concludedForwards(
    chainId: number,
    recoverer: Address,
    range: TxNonceRange,
  ): Promise<readonly ConcludedTransaction[]>;

  /** Undoes forwards whose block has vanished from the chain: the settlements are failed again, and their recoveries sent. */
  reopenForwards(
    chainId: number,
    recoverer: Address,
    transactions: readonly Pick<ConcludedTransaction, "txNonce" | "blockHash">[],
  ): Promise<void>;

  /** Counts the payments that were submitted directly to the token, by network and state of their forwards. */
  recoveryCounts(): Promise<readonly { network: NetworkName; state: RecoveryState; count: number }[]>;
};
