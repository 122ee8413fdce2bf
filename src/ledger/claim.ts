import type { Kysely, Transaction } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import { bytes32 } from "../protocol/primitives.ts";
import { KitError } from "../util/errors.ts";
import { findForeign, keepingChannels } from "./channels.ts";
import { allAtOnce, inTransaction, withCommit } from "./database/transactions.ts";
import { keptMs, sweep } from "./idempotency.ts";
import type { ClaimOutcome, ClaimRequest, Claims } from "./ledger.ts";
import {
  fromAttempt,
  fromSettlement,
  type LedgerTables,
  lowerCase,
  toAttempt,
  toSafeInteger,
} from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import {
  attemptsOf,
  givingBack,
  lockingAccounts,
  lockOperator,
  settlementsOf,
  takenTxNonce,
  taking,
} from "./tx-nonces.ts";

/** Implements {@link Claims.claim}. */
export function createClaim(db: Kysely<LedgerTables>, now: () => number): Claims["claim"] {
  return async (operator, requests, sign) => {
    if (requests.length === 0) return { outcomes: [], attempt: null };
    return inTransaction(db, async (transaction) => {
      const { chainId } = operator;
      if (requests.some((request) => request.chainId !== chainId)) {
        throw new KitError(`Only payments on chain ${chainId} can be claimed with its operator`);
      }
      // The operator's row comes first, because it blocks other instances that claim with it; then the accounts. What
      // is read afterwards includes all changes by their previous holders.
      const [taken, unmined, , known, reserved] = await allAtOnce(transaction, [
        taking(transaction, operator),
        countingUnmined(transaction, operator),
        lockingAccounts(transaction, requests, now()),
        findingKnown(transaction, requests),
        readingReserved(transaction, chainId, requests),
      ]);
      const txNonce = takenTxNonce(operator, taken);
      if (Number(unmined[0]?.unmined) >= operator.maxUnmined) {
        await withCommit(transaction, [givingBack(transaction, operator, txNonce)]);
        return { outcomes: requests.map(() => "no_room"), attempt: null };
      }
      const outcomes = decideClaims(
        requests,
        new Set(known.map(({ id }) => id)),
        reserved.map(({ asset, payer, amount, block_number }) => ({
          asset,
          payer,
          amount: BigInt(amount),
          minedIn: block_number === null ? null : BigInt(block_number),
        })),
      );
      const ofChannels = requests.filter(concernsChannels);
      if (ofChannels.length > 0) {
        const foreign = await findForeign(transaction, chainId, ofChannels);
        for (const [index, { id }] of requests.entries()) if (foreign.has(id)) outcomes[index] = "taken";
      }
      for (const index of await bindIdentifiers(transaction, { requests, outcomes, time: now() })) {
        outcomes[index] = "identifier_reused";
      }
      const claimable = requests.filter((_, index) => outcomes[index] === "claimed");
      if (claimable.length === 0) {
        await withCommit(transaction, [givingBack(transaction, operator, txNonce)]);
        return { outcomes, attempt: null };
      }
      const { hash, raw, maxFeePerGas, maxPriorityFeePerGas } = await sign(txNonce, claimable);
      const createdAt = now();
      const attempt: Attempt = {
        hash,
        chainId,
        operator: operator.address,
        txNonce,
        kind: "settle",
        raw,
        maxFeePerGas,
        maxPriorityFeePerGas,
        createdAt,
      };
      const row = fromAttempt(attempt);
      const settlements = claimable.map((request) =>
        fromSettlement({
          ...request,
          state: "submitted",
          operator: operator.address,
          txNonce,
          transactionHash: hash,
          blockNumber: null,
          blockHash: null,
          failure: null,
          claimedBlock: request.balanceBlock,
          claimedAt: createdAt,
          concludedAt: null,
          deliveredAt: null,
        }),
      );
      const moving = claimable.filter(concernsChannels);
      await withCommit(transaction, [
        transaction.insertInto("attempts").values(row),
        transaction.insertInto("settlements").values(settlements),
        ...(moving.length === 0 ? [] : keepingChannels(transaction, moving, createdAt)),
      ]);
      return { outcomes, attempt: toAttempt(row) };
    });
  };
}

const concernsChannels = ({ channels }: ClaimRequest) => channels !== undefined;

function findingKnown(transaction: Transaction<LedgerTables>, requests: readonly ClaimRequest[]) {
  const ids = requests.map(({ id }) => lowerCase(id));
  return transaction.selectFrom("settlements").select("id").where("id", "in", ids);
}

/** Returns the statement that reads the amounts reserved on the payers' balances, besides the requests themselves. */
function readingReserved(
  transaction: Transaction<LedgerTables>,
  chainId: number,
  requests: readonly ClaimRequest[],
) {
  const oldestBalance = Math.min(...requests.map(({ balanceBlock }) => toSafeInteger(balanceBlock)));
  // May also match pairs of (asset, payer) that no request has; those are ignored.
  const ofPayers = transaction
    .selectFrom("settlements")
    .select(["asset", "payer", "amount", "block_number"])
    .where("chain_id", "=", chainId)
    .where("asset", "in", distinct(requests.map(({ asset }) => lowerCase(asset))))
    .where("payer", "in", distinct(requests.map(({ payer }) => lowerCase(payer))));
  const paidSince = (state: "settled" | "recovered") =>
    ofPayers.where("state", "=", state).where("block_number", ">", oldestBalance);
  // One state at a time: with a list of states, Postgres may read everything the payer has ever paid.
  return ofPayers
    .where("state", "=", "submitted")
    .unionAll(paidSince("settled"))
    .unionAll(paidSince("recovered"));
}

/**
 * Counts an operator's txNonces that are not known to be in a block. If fewer than `maxUnmined` are open, it counts
 * the open ones instead, including those in a block that is not final. That does not change the decision, and saves a
 * check of every pending payment.
 */
function countingUnmined(
  transaction: Transaction<LedgerTables>,
  { chainId, address, maxUnmined }: { chainId: number; address: Address; maxUnmined: number },
) {
  const open = transaction
    .selectFrom("attempts")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(address))
    .where("state", "=", "open");
  const txNonces = open.select((attempts) =>
    attempts.fn.count<number | bigint | string>("tx_nonce").distinct().as("unmined"),
  );
  return txNonces.where((attempt) => {
    const { or, eb, not, exists } = attempt;
    const mined = settlementsOf(attempt).where("settlements.block_number", "is not", null);
    return or([eb(txNonces, "<", maxUnmined), not(exists(mined))]);
  });
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

/** An amount reserved on a payer's balance, besides the requests themselves. */
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
  /** Cache of the sum mined after a block; payments that are claimed together mostly share the block. */
  minedAfter: Map<bigint, bigint>;
};

/**
 * Decides which payments can be claimed, in the given order, each against its own balance:
 *
 * - `taken`: its id is in the ledger, or an earlier request of the same call got it;
 * - `over_balance`: amount + unmined > balance, where *unmined* are the payer's settlements not known to be in a
 *   block, and earlier requests of the same call that were accepted;
 * - `stale_balance`: not over, but amount + unmined + just mined > balance, where *just mined* are settlements in
 *   blocks after `balanceBlock`. The balance may or may not include them, so it must be read again;
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

/** Implements {@link Claims.addAttempt}. */
export function createAddAttempt(db: Kysely<LedgerTables>): Claims["addAttempt"] {
  return (attempt) =>
    inTransaction(db, async (transaction) => {
      await lockOperator(transaction, attempt);
      const row = fromAttempt(attempt);
      const open = await attemptsOf(transaction, attempt, [attempt.txNonce])
        .select("hash")
        .where("state", "=", "open")
        .executeTakeFirst();
      if (open === undefined) return false;
      // Another instance may have signed the same transaction at the same time.
      await transaction
        .insertInto("attempts")
        .values(row)
        .onConflict((conflict) => conflict.column("hash").doNothing())
        .execute();
      // A no-op settles nothing, so the settlements keep the hash of the transaction that would.
      if (attempt.kind === "settle") {
        await transaction
          .updateTable("settlements")
          .set({ transaction_hash: row.hash })
          .where("chain_id", "=", row.chain_id)
          .where("operator", "=", row.operator)
          .where("tx_nonce", "=", row.tx_nonce)
          .where("state", "=", "submitted")
          .execute();
      }
      return true;
    });
}

/*
 * Identifiers are kept next to the keys of `Idempotency-Key`, for the same time. They have no stored response; the
 * settlement is the response. They are written together with the claim, so that two payments with one identifier are
 * never both claimed, even by different instances or after a crash. A refused payment binds nothing.
 */

/** Implements {@link Claims.findIdentifier}. */
export function createFindIdentifier(db: Kysely<LedgerTables>, now: () => number): Claims["findIdentifier"] {
  return async (organizationId, id) => {
    const row = await db
      .selectFrom("idempotency")
      .select("body_hash")
      .where("organization_id", "=", organizationId)
      .where("idempotency_key", "=", keyOf(id))
      .where("expires_at", ">", now())
      .executeTakeFirst();
    return row === undefined ? null : bytes32.parse(row.body_hash);
  };
}

/**
 * Binds the identifiers of the requests being claimed; returns the indexes of those whose identifier belongs to
 * another payment.
 */
export async function bindIdentifiers(
  transaction: Transaction<LedgerTables>,
  {
    requests,
    outcomes,
    time,
  }: { requests: readonly ClaimRequest[]; outcomes: readonly ClaimOutcome[]; time: number },
): Promise<readonly number[]> {
  const named = requests
    .flatMap(({ organizationId, identifier }, index) =>
      identifier === undefined || outcomes[index] !== "claimed"
        ? []
        : [{ index, organizationId, ...identifier }],
    )
    // Always in the same order, so that two transactions cannot deadlock.
    .sort((a, b) => (`${a.organizationId} ${a.id}` < `${b.organizationId} ${b.id}` ? -1 : 1));
  const reused: number[] = [];
  for (const { index, organizationId, id, fingerprint } of named) {
    if (!(await bind(transaction, { organizationId, id, fingerprint, time }))) reused.push(index);
  }
  if (named.length > 0) await sweep(transaction, time);
  return reused;
}

async function bind(
  transaction: Transaction<LedgerTables>,
  {
    organizationId,
    id,
    fingerprint,
    time,
  }: { organizationId: string; id: string; fingerprint: Hex; time: number },
): Promise<boolean> {
  const bound = {
    body_hash: fingerprint,
    answer: "claimed",
    instance_id: "",
    lease_expires_at: time,
    expires_at: time + keptMs,
  };
  const written = await transaction
    .insertInto("idempotency")
    .values({ organization_id: organizationId, idempotency_key: keyOf(id), ...bound })
    .onConflict((conflict) =>
      conflict
        .columns(["organization_id", "idempotency_key"])
        .doUpdateSet(bound)
        .where((row) =>
          row.or([row("idempotency.expires_at", "<=", time), row("idempotency.body_hash", "=", fingerprint)]),
        ),
    )
    .returning("organization_id")
    .executeTakeFirst();
  return written !== undefined;
}

/** Cannot collide with an `Idempotency-Key`, which has no spaces. */
function keyOf(id: string): string {
  return `payment-identifier ${id}`;
}
