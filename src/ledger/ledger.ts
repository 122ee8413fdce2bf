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

/** A payment that asks to be claimed, with the balance it was checked against. */
export type ClaimRequest = Claim & {
  balance: bigint;
  /** The block at or after which `balance` was read. */
  balanceBlock: bigint;
};

/**
 * - `claimed`: it is in the ledger and in the transaction;
 * - `taken`: its id was claimed before;
 * - `identifier_reused`: its identifier was another payment's of the organization;
 * - `over_balance`: its value and the payer's unfinished settlements exceed the balance;
 * - `stale_balance`: they do not, but together with what was settled in blocks after `balanceBlock` they do. Whether
 *   the balance still holds that is not known: read it again;
 * - `no_room`: as many of the operator's transactions are unmined as may be, those of other instances included.
 */
export type ClaimOutcome =
  | "claimed"
  | "taken"
  | "identifier_reused"
  | "over_balance"
  | "stale_balance"
  | "no_room";

/** How one settlement of a mined transaction ended. */
export type Conclusion = { id: Hex; state: "settled" } | { id: Hex; state: "failed"; failure: string };

/** One change of an operator's next txNonce by hand; `at` in unix milliseconds. */
export type TxNonceChange = { at: number; actor: string; from: number; to: number };

/** Which settlements a list holds; what is undefined does not matter. */
export type SettlementFilter = {
  organizationId?: string | undefined;
  network?: NetworkName | undefined;
  state?: SettlementState | undefined;
  payer?: Address | undefined;
  /** Claimed at or after this, unix milliseconds. */
  from?: number | undefined;
  /** Claimed before this, unix milliseconds. */
  to?: number | undefined;
};

/** Something of payers with code at their address, and of plain accounts. */
export type ByPayer<T> = { withCode: T; plain: T };

/**
 * The cost of settlements, in wei, and the number of unfinished ones, whose cost is not known yet. Gifts for approvals are in
 * `spent.withCode`: strangers decide about both.
 */
export type GasSpending = { spent: ByPayer<bigint>; unfinished: ByPayer<number> };

/** A payer's balance of an asset on a chain. */
export type PayerAccount = Pick<ClaimRequest, "chainId" | "asset" | "payer">;

/** Settles that are counted together: of a payer's balance, of an organization's payers with code, of those with one code. */
export type SettlesOf =
  | ({ kind: "payer" } & PayerAccount)
  | { kind: "organization"; organizationId: string; network: NetworkName }
  | { kind: "code"; organizationId: string; network: NetworkName; payerCode: Hex };

/** How they went. No number is above 1,000. */
export type RecentSettles = {
  /** All that are undecided. */
  underWay: number;
  settled: number;
  /** Those that failed; of an organization, how many different codes their payers have. */
  reverted: number;
  /** Unix milliseconds. */
  lastRevertedAt: number | null;
};

/** An answer that is to be given again under an `Idempotency-Key` of an organization. */
export type KeptAnswer = { organizationId: string; key: string; answer: string };

/** A stored answer, or the promise of one, under an `Idempotency-Key`. */
export type IdempotencyEntry =
  | { status: "new" }
  | { status: "running" }
  | { status: "other_body" }
  | { status: "answered"; answer: string };

/** Settlements as they are claimed, and the signed transactions that carry them, each with a txNonce of its operator. */
export type Claims = {
  /**
   * Claims payments for their organizations and stores the signed transaction that settles them, with its
   * txNonce, in one transaction. `sign` gets the requests that may be claimed, at least one; when it throws,
   * nothing has happened. It must not use the ledger, which waits for it. Requests count against one balance in
   * the given order. Without any claimable request no txNonce is taken and `attempt` is null.
   * `maxUnmined` transactions of the operator may be unmined at a time, this one included.
   */
  claim(
    operator: { chainId: number; address: Address; maxUnmined: number },
    requests: readonly ClaimRequest[],
    sign: (txNonce: number, claimable: readonly ClaimRequest[]) => Promise<SignedAttempt>,
  ): Promise<{ outcomes: readonly ClaimOutcome[]; attempt: Attempt | null }>;

  /**
   * Claims a payment for which nothing is sent, and concludes it as settled: nothing of it is taken, and its hash is
   * {@link noTransaction}; or somebody else's transaction has settled it, in a block that is deep enough.
   *
   * @param charge what its organization's gas budget is charged for the row, in wei
   */
  claimNothing(
    claim: Claim,
    checkedAt: bigint,
    charge: bigint,
    settledBy?: Pick<MinedTransaction, "hash" | "blockNumber" | "blockHash">,
  ): Promise<Extract<ClaimOutcome, "claimed" | "taken" | "identifier_reused">>;

  find(id: Hex): Promise<Settlement | null>;

  /** Settlements by the time of their claim, newest first: `limit` of them, after the one that `after` names. */
  list(
    filter: SettlementFilter,
    page: { limit: number; after?: Cursor | undefined },
  ): Promise<{ settlements: readonly Settlement[]; next: Cursor | null }>;

  /** The fingerprint of the payment that an organization's identifier was claimed with in the last 24 h; null when there is none. */
  findIdentifier(organizationId: string, id: string): Promise<Hex | null>;

  /**
   * Moves unfinished settlements to a new txNonce, because theirs was taken by a transaction that
   * decided nothing about them: `mined`, or one that is none of ours. Stores the signed transaction that settles them
   * there, and closes the old txNonce when none is left on it, all in one transaction. Null, and nothing signed, when
   * none of them is unfinished on that txNonce any more.
   */
  redrive(
    from: { chainId: number; operator: Address; txNonce: number; mined: Hex | null },
    ids: readonly Hex[],
    sign: (txNonce: number, settlements: readonly Settlement[]) => Promise<SignedAttempt>,
  ): Promise<{ attempt: Attempt; settlements: readonly Settlement[] } | null>;

  /**
   * Stores another attempt of an open txNonce, before it is broadcast: a replacement with higher fees, or a no-op.
   * False, and nothing stored, when the txNonce has been closed meanwhile.
   */
  addAttempt(attempt: Attempt): Promise<boolean>;

  /** Attempts whose txNonce is still open, oldest txNonce first, each with its settlements. */
  openAttempts(
    chainId: number,
    operator: Address,
  ): Promise<readonly { attempt: Attempt; settlements: readonly Settlement[] }[]>;

  /** Sets the first txNonce of an operator that the ledger does not know yet; else changes nothing. */
  introduceOperator(chainId: number, operator: Address, txNonce: number): Promise<void>;

  /** The txNonce after the last one that was taken; null for an operator that was not introduced. */
  nextTxNonce(chainId: number, operator: Address): Promise<number | null>;

  /**
   * Moves the next txNonce of an operator up, because another program has sent with its key, and records who did this.
   * Returns false, and changes nothing, if it is there already, or the operator is unknown.
   */
  acceptTxNonce(
    operator: { chainId: number; operator: Address; txNonce: number },
    actor: string,
  ): Promise<boolean>;

  /** The changes made by {@link acceptTxNonce}, oldest first. */
  operatorChanges(chainId: number, operator: Address): Promise<readonly TxNonceChange[]>;
};

/** The outcome of claims: which transaction decided them, in which block, and at what cost. */
export type Outcomes = {
  /**
   * Notes in which block unfinished settlements were mined that is not deep enough yet, or null when that block has
   * vanished. A balance read at or after that block does not hold their value any more, so that it is not reserved
   * twice.
   */
  noteMined(ids: readonly Hex[], blockNumber: bigint | null): Promise<void>;

  /**
   * Records how the settlements of a mined transaction ended, and closes every attempt of its txNonce. What is
   * concluded already stays as it is, so that recording a transaction twice changes nothing. Throws, and changes
   * nothing, unless the conclusions account for every unfinished settlement of the txNonce and for no others: a
   * closed txNonce is not watched any more.
   */
  conclude(mined: MinedTransaction, conclusions: readonly Conclusion[]): Promise<void>;

  /**
   * Transactions that decided an operator's settlements, highest txNonce first, except those of failures that are being
   * recovered. `limit` counts txNonces: there is more than one where a payment of a txNonce turned out to have been made
   * by another transaction.
   */
  concludedSettles(
    chainId: number,
    operator: Address,
    range: TxNonceRange,
  ): Promise<readonly ConcludedTransaction[]>;

  /**
   * Takes conclusions back whose block has vanished from the chain: the settlements are undecided again, and the stored
   * transactions may be mined. Whether a success was handed over stays known, so that there is no second one. Does
   * nothing for a transaction that is concluded in another block by now.
   */
  reopenSettles(
    chainId: number,
    operator: Address,
    transactions: readonly Pick<ConcludedTransaction, "txNonce" | "blockHash">[],
  ): Promise<void>;

  /**
   * Opens a closed txNonce that no settlement needs and that the chain does not know any more, with a no-op: the one
   * that is stored, or else a new one. Null, and nothing signed, when it is open, or when a payment was decided with it.
   */
  fillTxNonce(
    sender: { chainId: number; operator: Address; txNonce: number },
    sign: () => Promise<SignedAttempt>,
  ): Promise<{ attempt: Attempt; settlements: readonly Settlement[] } | null>;

  /** The networks that have settlements. */
  networks(): Promise<readonly { network: NetworkName; chainId: number }[]>;

  /** The networks that have unfinished settlements: how many, and when the oldest of them was claimed. */
  unfinished(): Promise<readonly { network: NetworkName; count: number; oldestClaimedAt: number }[]>;

  /** The cost of settling for an organization on a network since the day (UTC) began, gifts to its payers included. */
  gasSpending(organizationId: string, network: NetworkName): Promise<GasSpending>;

  /** How settles of a kind went that were decided after a moment (unix milliseconds). */
  recentSettles(of: SettlesOf, since: number): Promise<RecentSettles>;

  /** Returns true if the newest settle of a payer with this code to this organization succeeded, and is not under way. */
  hasPaidLast(payer: PayerAccount, by: { organizationId: string; payerCode: Hex }): Promise<boolean>;
};

/** Rights to settle and to answer, each of one request at a time, and the successes that were handed over by them. */
export type Leases = {
  /**
   * Takes the right to settle, and then to answer, an authorization; false while another request holds it. A lease
   * that is not renewed in time is free to be taken. Taking one's own lease again is true. Holders are told apart
   * within their instance: their names need be unique there only. Where it throws, what it may have taken is given up
   * once the database is back.
   */
  acquireLease(id: Hex, holder: string): Promise<boolean>;

  releaseLease(id: Hex, holder: string): Promise<void>;

  /**
   * Who holds the right to an authorization: a request of this instance or of another one, and until when (unix
   * milliseconds) unless it is renewed; null when it is free. An instance that has died renews nothing.
   */
  findLease(id: Hex): Promise<{ isOwn: boolean; expiresAt: number } | null>;

  /** Extends all leases and running idempotency keys that this instance holds; called on a timer. */
  renewLeases(): Promise<void>;

  /**
   * Marks a success as handed over, stores its answer where it is to be given again, and gives up the lease, in one
   * transaction. Does nothing for a holder that has lost the lease; marks nothing that is not a success.
   */
  markDelivered(id: Hex, holder: string, kept?: KeptAnswer): Promise<void>;

  /**
   * Binds an `Idempotency-Key` of an organization to a request body, or tells what it is bound to. Kept for 24 h. Where it
   * throws, a key that it may have bound is freed once the database is back.
   */
  beginIdempotent(organizationId: string, key: string, bodyHash: string): Promise<IdempotencyEntry>;

  /** Stores the answer to give again under the key, unless the key is another request's by now. */
  answerIdempotent(kept: KeptAnswer): Promise<void>;

  /** Frees a key whose request ended without a verdict. */
  abandonIdempotent(organizationId: string, key: string): Promise<void>;

  /**
   * Does the writes again that failed, of deliveries and of rights given up, but for those that are being done already.
   * Called on a timer. May take long where the database comes and goes, so that nothing else should wait for it.
   */
  retryWrites(): Promise<void>;

  /** The same until all are done, for `forMs` at most. Gives how many are left, which end with the process. */
  finishWrites(forMs: number): Promise<number>;
};

/**
 * Everything that must survive the process, in four stores: claims, their outcomes, the leases, and the recoveries after a
 * failure. Every method is one transaction and durable when it returns.
 */
export type Ledger = {
  readonly claims: Claims;
  readonly outcomes: Outcomes;
  readonly leases: Leases;
  readonly recoveries: Recoveries;
  readonly gifts: Gifts;
  readonly channels: Channels;
};
