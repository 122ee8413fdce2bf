import type { Address, Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Cursor } from "../protocol/settlement-query.ts";
import type { Channels } from "./channels.ts";
import type { Gifts } from "./gifts.ts";
import type { Recoveries } from "./recoveries.ts";
import type {
  Attempt,
  Claim,
  ConcludedTransaction,
  MinedTransaction,
  Settlement,
  SettlementState,
  SignedAttempt,
  TxNonceRange,
} from "./settlement.ts";

/** A payment to claim, with the balance it was checked against. */
export type ClaimRequest = Claim & {
  balance: bigint;
  /** `balance` was read at or after this block. */
  balanceBlock: bigint;
};

/**
 * - `claimed`: it is in the ledger and in the transaction;
 * - `taken`: its id was claimed before, or another organization has opened its channel;
 * - `identifier_reused`: the organization has used its identifier for another payment;
 * - `over_balance`: its value and the payer's unfinished settlements exceed the balance;
 * - `stale_balance`: they do not, but together with settlements in blocks after `balanceBlock` they do. The balance
 *   may include those or not, so it must be read again;
 * - `no_room`: the operator has the maximum number of unmined transactions, counted over all instances.
 */
export type ClaimOutcome =
  | "claimed"
  | "taken"
  | "identifier_reused"
  | "over_balance"
  | "stale_balance"
  | "no_room";

/** The outcome of one settlement in a mined transaction. */
export type Conclusion = { id: Hex; state: "settled" } | { id: Hex; state: "failed"; failure: string };

/** A manual change of an operator's next txNonce; `at` is in unix milliseconds. */
export type TxNonceChange = { at: number; actor: string; from: number; to: number };

/** The settlements to list; undefined fields match everything. */
export type SettlementFilter = {
  organizationId?: string | undefined;
  network?: NetworkName | undefined;
  state?: SettlementState | undefined;
  payer?: Address | undefined;
  /** Claimed at or after this time, in unix milliseconds. */
  from?: number | undefined;
  /** Claimed before this time, in unix milliseconds. */
  to?: number | undefined;
};

/** A value for payers with code at their address, and one for plain accounts. */
export type ByPayer<T> = { withCode: T; plain: T };

/**
 * The cost of settlements, in wei, and the number of unfinished ones, whose cost is not known yet. Gifts for approvals
 * count in `spent.withCode`, because strangers can cause both.
 */
export type GasSpending = { spent: ByPayer<bigint>; unfinished: ByPayer<number> };

export type PayerAccount = Pick<ClaimRequest, "chainId" | "asset" | "payer">;

/** A group of settlements: on a payer's balance, for an organization's payers with code, or for those with one code. */
export type SettlesOf =
  | ({ kind: "payer" } & PayerAccount)
  | { kind: "organization"; organizationId: string; network: NetworkName }
  | { kind: "code"; organizationId: string; network: NetworkName; payerCode: Hex };

/** The outcomes of recent settlements in a group. Each count stops at 1,000. */
export type RecentSettles = {
  /** All undecided ones, however old. */
  underWay: number;
  settled: number;
  /** The failed ones; for an organization, the number of different codes among their payers. */
  reverted: number;
  /** Unix milliseconds. */
  lastRevertedAt: number | null;
};

/** A response to repeat for an organization's `Idempotency-Key`. */
export type KeptAnswer = { organizationId: string; key: string; answer: string };

/** The state of an `Idempotency-Key`: new, running, bound to another body, or answered. */
export type IdempotencyEntry =
  | { status: "new" }
  | { status: "running" }
  | { status: "other_body" }
  | { status: "answered"; answer: string };

/** Claims of settlements, and the signed transactions that carry them, each with a txNonce of its operator. */
export type Claims = {
  /**
   * Claims payments and stores the signed transaction that settles them, with its txNonce, in one transaction. `sign`
   * gets the requests that can be claimed, at least one; if it throws, nothing has happened. It must not use the ledger,
   * which waits for it. Requests count against one balance in the given order. If none can be claimed, no txNonce is
   * taken and `attempt` is null. At most `maxUnmined` of the operator's transactions may be unmined, including this one.
   */
  claim(
    operator: { chainId: number; address: Address; maxUnmined: number },
    requests: readonly ClaimRequest[],
    sign: (txNonce: number, claimable: readonly ClaimRequest[]) => Promise<SignedAttempt>,
  ): Promise<{ outcomes: readonly ClaimOutcome[]; attempt: Attempt | null }>;

  /**
   * Claims a payment without sending a transaction, and concludes it as settled. Either nothing is taken and its
   * hash is {@link noTransaction}, or somebody else's transaction has settled it in a block that is deep enough.
   *
   * @param charge the amount charged to its organization's gas budget for the row, in wei
   */
  claimNothing(
    claim: Claim,
    checkedAt: bigint,
    charge: bigint,
    settledBy?: Pick<MinedTransaction, "hash" | "blockNumber" | "blockHash">,
  ): Promise<Extract<ClaimOutcome, "claimed" | "taken" | "identifier_reused">>;

  find(id: Hex): Promise<Settlement | null>;

  /** Lists settlements by the time of their claim, newest first: up to `limit`, starting after `after`. */
  list(
    filter: SettlementFilter,
    page: { limit: number; after?: Cursor | undefined },
  ): Promise<{ settlements: readonly Settlement[]; next: Cursor | null }>;

  /** Returns the fingerprint of the payment claimed with an organization's identifier in the last 24 h, or null. */
  findIdentifier(organizationId: string, id: string): Promise<Hex | null>;

  /**
   * Moves unfinished settlements to a new txNonce, because theirs was taken by a transaction that decided nothing
   * about them: `mined`, or one that is not ours. In one transaction, stores the signed transaction that settles them
   * and closes the old txNonce if no settlement is left on it. Returns null without signing if none of them is
   * unfinished on that txNonce any more.
   */
  redrive(
    from: { chainId: number; operator: Address; txNonce: number; mined: Hex | null },
    ids: readonly Hex[],
    sign: (txNonce: number, settlements: readonly Settlement[]) => Promise<SignedAttempt>,
  ): Promise<{ attempt: Attempt; settlements: readonly Settlement[] } | null>;

  /**
   * Stores another attempt for an open txNonce, before it is broadcast: a replacement with higher fees, or a no-op.
   * Returns false and stores nothing if the txNonce has been closed meanwhile.
   */
  addAttempt(attempt: Attempt): Promise<boolean>;

  /** Returns the attempts with an open txNonce, oldest txNonce first, each with its settlements. */
  openAttempts(
    chainId: number,
    operator: Address,
  ): Promise<readonly { attempt: Attempt; settlements: readonly Settlement[] }[]>;

  /** Sets the first txNonce of an operator that the ledger does not know yet; otherwise changes nothing. */
  introduceOperator(chainId: number, operator: Address, txNonce: number): Promise<void>;

  /** Returns the txNonce after the last one taken; null for an unknown operator. */
  nextTxNonce(chainId: number, operator: Address): Promise<number | null>;

  /**
   * Raises the next txNonce of an operator, because another program has sent with its key, and records who did it.
   * Returns false and changes nothing if it is that high already, or the operator is unknown.
   */
  acceptTxNonce(
    operator: { chainId: number; operator: Address; txNonce: number },
    actor: string,
  ): Promise<boolean>;

  /** Returns the changes made by {@link acceptTxNonce}, oldest first. */
  operatorChanges(chainId: number, operator: Address): Promise<readonly TxNonceChange[]>;
};

/** The outcomes of claims: the transaction that decided them, its block and its cost. */
export type Outcomes = {
  /**
   * Records the block that holds unfinished settlements but is not deep enough yet, or null if that block has vanished.
   * A balance read at or after that block no longer includes their value, so it must not be reserved as well.
   */
  noteMined(ids: readonly Hex[], blockNumber: bigint | null): Promise<void>;

  /**
   * Records the outcomes of a mined transaction's settlements, and closes every attempt of its txNonce. Existing
   * conclusions stay, so recording a transaction twice changes nothing. Throws and changes nothing unless the
   * conclusions cover exactly the unfinished settlements of the txNonce: a closed txNonce is not watched any more.
   */
  conclude(mined: MinedTransaction, conclusions: readonly Conclusion[]): Promise<void>;

  /**
   * Returns transactions that decided an operator's settlements, highest txNonce first, except those of failures that
   * are being recovered. `limit` counts txNonces: one can have several transactions, if another transaction turned out
   * to have made one of its payments.
   */
  concludedSettles(
    chainId: number,
    operator: Address,
    range: TxNonceRange,
  ): Promise<readonly ConcludedTransaction[]>;

  /**
   * Undoes conclusions whose block has vanished from the chain: the settlements are undecided again, and the stored
   * transactions may be mined. Deliveries stay recorded, so that no success is delivered twice. Does nothing for a
   * transaction that has been concluded in another block since.
   */
  reopenSettles(
    chainId: number,
    operator: Address,
    transactions: readonly Pick<ConcludedTransaction, "txNonce" | "blockHash">[],
  ): Promise<void>;

  /**
   * Reopens a closed txNonce that no settlement needs and the chain does not know any more, with a no-op: the stored one
   * if there is one, otherwise a new one. Returns null without signing if it is open, or if a payment was decided with it.
   */
  fillTxNonce(
    sender: { chainId: number; operator: Address; txNonce: number },
    sign: () => Promise<SignedAttempt>,
  ): Promise<{ attempt: Attempt; settlements: readonly Settlement[] } | null>;

  /** Returns the networks that have settlements. */
  networks(): Promise<readonly { network: NetworkName; chainId: number }[]>;

  /** Returns the networks with unfinished settlements, with their number and the claim time of the oldest. */
  unfinished(): Promise<readonly { network: NetworkName; count: number; oldestClaimedAt: number }[]>;

  /** Returns what settling on a network has cost an organization since midnight UTC, including gifts to its payers. */
  gasSpending(organizationId: string, network: NetworkName): Promise<GasSpending>;

  /** Counts the settlements of a group that were decided after `since` (unix milliseconds). */
  recentSettles(of: SettlesOf, since: number): Promise<RecentSettles>;

  /** Returns true if the newest settlement of a payer with this code for this organization has succeeded. */
  hasPaidLast(payer: PayerAccount, by: { organizationId: string; payerCode: Hex }): Promise<boolean>;
};

/** Rights to settle and respond, each held by one request at a time, and the successes delivered under them. */
export type Leases = {
  /**
   * Takes the right to settle an authorization and respond for it; false while another request holds it. A lease that
   * is not renewed in time can be taken. Taking one's own lease again returns true. Holder names only need to be
   * unique within an instance. If it throws, a lease that was taken anyway is released once the database is back.
   */
  acquireLease(id: Hex, holder: string): Promise<boolean>;

  releaseLease(id: Hex, holder: string): Promise<void>;

  /**
   * Returns who holds an authorization, a request of this instance or of another one, and until when (unix
   * milliseconds) unless renewed; null if it is free. A dead instance renews nothing.
   */
  findLease(id: Hex): Promise<{ isOwn: boolean; expiresAt: number } | null>;

  /** Extends all leases and running idempotency keys of this instance; called on a timer. */
  renewLeases(): Promise<void>;

  /**
   * Marks a success as delivered, stores its response if it must be repeatable, and releases the lease, in one
   * transaction. Does nothing if the holder has lost the lease.
   */
  markDelivered(id: Hex, holder: string, kept?: KeptAnswer): Promise<void>;

  /**
   * Binds an organization's `Idempotency-Key` to a request body for 24 h, or returns its existing binding. If it
   * throws, a key that was bound anyway is freed once the database is back.
   */
  beginIdempotent(organizationId: string, key: string, bodyHash: string): Promise<IdempotencyEntry>;

  /** Stores the response for a key, unless another request owns the key by now. */
  answerIdempotent(kept: KeptAnswer): Promise<void>;

  /** Frees a key whose request ended without a decision. */
  abandonIdempotent(organizationId: string, key: string): Promise<void>;

  /**
   * Retries failed writes of deliveries and releases, except those already being retried. Called on a timer. May take
   * long if the database is unstable, so nothing else should wait for it.
   */
  retryWrites(): Promise<void>;

  /** Retries failed writes until none is left, for at most `forMs`. Returns the number left, which are lost on exit. */
  finishWrites(forMs: number): Promise<number>;
};

/**
 * Everything that must survive the process: claims, outcomes, leases, recoveries, gifts and channels. Every method is
 * one transaction, and durable when it returns.
 */
export type Ledger = {
  readonly claims: Claims;
  readonly outcomes: Outcomes;
  readonly leases: Leases;
  readonly recoveries: Recoveries;
  readonly gifts: Gifts;
  readonly channels: Channels;
};
