import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Attempt, ConcludedTransaction, Settlement, SignedAttempt, TxNonceRange } from "./settlement.ts";

/** The token's `Transfer` by which a direct submission brought its value to the contract, as a place on chain. */
export type RecoveryProof = { transactionHash: Hex; logIndex: number; blockNumber: bigint };

/**
 * | State | Meaning | Authority |
 * |---|---|---|
 * | queued | a direct submission was proven; no signed forward of it can be mined any more | the ledger |
 * | sent | a forward is signed; its outcome is not known | the ledger |
 * | forwarded | mined, with our `Forwarded` in the receipt; the settlement is `recovered` | the chain |
 */
export const recoveryStates = ["queued", "sent", "forwarded"] as const;
export type RecoveryState = (typeof recoveryStates)[number];

export type Recovery = {
  proof: RecoveryProof;
  state: RecoveryState;
  /** Who signed the newest forward, and its txNonce; null before the first. */
  recoverer: Address | null;
  txNonce: number | null;
  /** Why the last try came to nothing, for the operator. */
  problem: string | null;
  queuedAt: number;
};

/** A failed settlement, and what is known of its authorization since. */
export type FailedSettlement = {
  settlement: Settlement;
  /** A block by which the authorization was used, before it is known how; null while it is not. */
  usedByBlock: bigint | null;
  /** Unix milliseconds; null when there is nothing more to look for, or a forward is being watched instead. */
  nextLookAt: number | null;
  recovery: Recovery | null;
};

/** The transaction that took a forward's txNonce. */
export type MinedForward = {
  chainId: number;
  recoverer: Address;
  txNonce: number;
  hash: Hex;
  blockNumber: bigint;
  blockHash: Hex;
};

/**
 * The outcome of failed settlements. A failure is looked at again until its authorization cannot be submitted any
 * more; a direct submission queues it, a signed forward takes it out of the queue, and the chain ends it.
 */
export type Recoveries = {
  /** A settlement with its follow-up; null unless it is failed. */
  findFailure(id: Hex): Promise<FailedSettlement | null>;

  /**
   * Failures of a chain that are due to be looked at, the longest overdue of them. They are put off until `nextLookAt`
   * (unix milliseconds), so that no other instance looks at them meanwhile, and another one does if this one dies.
   */
  takeDueFailures(chainId: number, limit: number, nextLookAt: number): Promise<readonly FailedSettlement[]>;

  /** Failures of a chain that are not at their end, due or not, in the order of their ids, from behind `after`. */
  openFailures(chainId: number, limit: number, after: Hex | null): Promise<readonly FailedSettlement[]>;

  /** Notes what a look has come to. Without a `nextLookAt` it was the last. */
  noteLook(id: Hex, look: { usedByBlock: bigint | null; nextLookAt: number | null }): Promise<void>;

  /**
   * Queues a failure for recovery. One that is queued already gets the new proof: blocks may have been replaced.
   * One that is sent or at its end stays as it is.
   *
   * @throws KitError when the proof is that of another settlement.
   */
  queueRecovery(id: Hex, proof: RecoveryProof): Promise<void>;

  /**
   * Makes a failure a success, because another transaction than the one that was watched has paid it: `settled` at once, or
   * `recovered` by a forward. False, and nothing is done, for one that is no failure any more, or whose forward is being
   * watched.
   */
  correctFailure(
    id: Hex,
    state: "settled" | "recovered",
    mined: { hash: Hex; blockNumber: bigint; blockHash: Hex },
  ): Promise<boolean>;

  /** Takes a failure out of the queue, because the proof has vanished from the chain. */
  dropRecovery(id: Hex): Promise<void>;

  /** Notes why a queued recovery could not be sent, and when it is tried again (unix milliseconds). */
  postponeRecovery(id: Hex, problem: string, nextLookAt: number): Promise<void>;

  /**
   * Introduces a recoverer, or moves its next txNonce up to the number of its transactions that are mined: it may be
   * used by hand too.
   */
  introduceRecoverer(chainId: number, recoverer: Address, minedTransactions: number): Promise<void>;

  /**
   * Stores the signed transaction that pays out a queued recovery, with its txNonce. Null, and nothing signed, when
   * it is not queued: another instance has sent it. `sign` must not use the ledger, which waits for it.
   */
  sendForward(
    recoverer: { chainId: number; address: Address },
    id: Hex,
    sign: (txNonce: number) => Promise<SignedAttempt>,
  ): Promise<{ attempt: Attempt; settlements: readonly Settlement[] } | null>;

  /** Forwards whose txNonce is still open, oldest txNonce first, each with the settlement that it pays out. */
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
   * Queues a recovery again whose forward came to nothing: it was mined and reverted, or, where no hash is given,
   * another transaction took its txNonce. Does nothing unless it is sent with that txNonce.
   */
  requeueForward(
    ended: { chainId: number; recoverer: Address; txNonce: number; hash: Hex | null },
    id: Hex,
    problem: string,
    nextLookAt: number,
  ): Promise<void>;

  /** Transactions of a recoverer that paid out recoveries, highest txNonce first. */
  concludedForwards(
    chainId: number,
    recoverer: Address,
    range: TxNonceRange,
  ): Promise<readonly ConcludedTransaction[]>;

  /** The same for forwards: the settlements are failed again, and their recoveries sent. */
  reopenForwards(
    chainId: number,
    recoverer: Address,
    transactions: readonly Pick<ConcludedTransaction, "txNonce" | "blockHash">[],
  ): Promise<void>;

  /** How many payments were submitted directly to the token, by network and by how far their forwards are. */
  recoveryCounts(): Promise<readonly { network: NetworkName; state: RecoveryState; count: number }[]>;
};
