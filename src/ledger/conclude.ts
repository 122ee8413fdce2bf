import { type Kysely, sql, type Transaction } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { together } from "../util/concurrency.ts";
import { KitError, UndeterminedError } from "../util/errors.ts";
import { allAtOnce, inTransaction, withCommit } from "./database/transactions.ts";
import { type Charge, chargingGas } from "./gas-spending.ts";
import type { Conclusion, Outcomes } from "./ledger.ts";
import type { Recoveries } from "./recoveries.ts";
import { type LedgerTables, lowerCase, toSafeInteger } from "./rows.ts";
import type { ConcludedTransaction, MinedTransaction, SettlementState } from "./settlement.ts";
import { closing, lockingTxNonces } from "./tx-nonces.ts";

/** A transaction to record, and the outcomes of its settlements. */
type Concluding = { mined: MinedTransaction; conclusions: readonly Conclusion[] };

/** One of its settlements, as stored before. */
type Concluded = {
  id: Hex;
  tx_nonce: number;
  state: SettlementState;
  organization_id: string;
  network: NetworkName;
  signature: Hex;
  payer_code: Hex | null;
  concluded_at: number | null;
};

/**
 * Implements {@link Outcomes.conclude}. Transactions of one operator are concluded together, as they mostly come from
 * one block. Operators are separate, so that a locked operator row does not delay the payments of other operators.
 */
export function createConclude(db: Kysely<LedgerTables>, now: () => number): Outcomes["conclude"] {
  const byOperator = new Map<string, (item: Concluding) => Promise<unknown>>();

  function concludeTogether(item: Concluding): Promise<unknown> {
    const key = `${item.mined.chainId} ${lowerCase(item.mined.operator)}`;
    let ofOperator = byOperator.get(key);
    if (ofOperator === undefined) {
      ofOperator = together(concludeAll, { most: 16, keyOf: ({ mined }) => String(mined.txNonce) });
      byOperator.set(key, ofOperator);
    }
    return ofOperator(item);
  }

  /** Returns the error of each item, so that one that cannot be recorded does not stop the others. */
  async function concludeAll(items: readonly Concluding[]): Promise<unknown[]> {
    try {
      await inTransaction(db, (transaction) => conclude(transaction, items, now()));
      return items.map(() => undefined);
    } catch (error) {
      if (items.length === 1 || error instanceof UndeterminedError) return items.map(() => error);
      const singly: unknown[] = [];
      for (const item of items) singly.push(...(await concludeAll([item])));
      return singly;
    }
  }

  return async (mined, conclusions) => {
    const error = await concludeTogether({ mined, conclusions });
    if (error !== undefined) throw error;
  };
}

/** Concludes transactions of one operator. */
async function conclude(
  transaction: Transaction<LedgerTables>,
  items: readonly Concluding[],
  time: number,
): Promise<void> {
  const [first] = items;
  if (first === undefined) return;
  const { chainId, operator } = first.mined;
  const txNonces = items.map(({ mined }) => mined.txNonce);
  const [batches] = await allAtOnce(
    transaction,
    [
      transaction
        .selectFrom("settlements")
        .select([
          "id",
          "tx_nonce",
          "state",
          "organization_id",
          "network",
          "signature",
          "payer_code",
          "concluded_at",
        ])
        .where("chain_id", "=", chainId)
        .where("operator", "=", lowerCase(operator))
        .where("tx_nonce", "in", txNonces),
    ],
    lockingTxNonces(transaction, first.mined, txNonces),
  );
  const charges: Charge[] = [];
  const statements = items.flatMap((item) => {
    const { mined } = item;
    const inBatch = batches.filter(({ tx_nonce }) => tx_nonce === mined.txNonce);
    const endings = sortByEnding(item, inBatch);
    if (mined.gasCost !== undefined) {
      // Settlements that were concluded before, in a block that vanished, have been charged already.
      const settlements = inBatch.filter(
        ({ state, concluded_at }) => state === "submitted" && concluded_at === null,
      );
      charges.push({ gasCost: mined.gasCost, settlements });
    }
    const updates = [...endings].map(([failure, ids]) =>
      transaction
        .updateTable("settlements")
        .set({
          state: failure === null ? "settled" : "failed",
          failure,
          transaction_hash: lowerCase(mined.hash),
          block_number: toSafeInteger(mined.blockNumber),
          block_hash: lowerCase(mined.blockHash),
          concluded_at: time,
        })
        .where("id", "in", ids),
    );
    return [...updates, closing(transaction, mined, mined.hash)];
  });
  await withCommit(transaction, [...chargingGas(transaction, charges, time), ...statements]);
}

/** Groups ids by outcome: null for settled, otherwise the failure. Leaves out those that are already concluded. */
function sortByEnding(
  { mined: { txNonce, operator, hash }, conclusions }: Concluding,
  inBatch: readonly Concluded[],
): Map<string | null, Hex[]> {
  const states = new Map(inBatch.map(({ id, state }) => [id, state]));
  const endings = new Map<string | null, Hex[]>();
  for (const conclusion of conclusions) {
    const id = lowerCase(conclusion.id);
    const state = states.get(id);
    if (state === undefined) {
      throw new KitError(
        `The settlement ${id} is not in the transaction with txNonce ${txNonce} of ${operator}`,
      );
    }
    states.delete(id);
    if (state !== "submitted") continue;
    const failure = conclusion.state === "failed" ? conclusion.failure : null;
    const ids = endings.get(failure);
    if (ids === undefined) endings.set(failure, [id]);
    else ids.push(id);
  }
  for (const [id, state] of states) {
    // A closed txNonce is not watched any more, so a settlement that is left out would never be decided.
    if (state === "submitted") throw new KitError(`The transaction ${hash} also decides settlement ${id}`);
  }
  return endings;
}

/** Implements {@link Outcomes.concludedSettles}. */
export function createConcludedSettles(db: Kysely<LedgerTables>): Outcomes["concludedSettles"] {
  return async (chainId, operator, { from = 0, below, limit }) => {
    let decided = db
      .selectFrom("settlements")
      .where("chain_id", "=", chainId)
      .where("operator", "=", lowerCase(operator))
      .where("tx_nonce", ">=", from)
      .where("state", "in", ["settled", "failed"])
      .where("block_hash", "is not", null)
      // As in `createReopenSettles`: a settlement being recovered would be found vanished again and again.
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom("recoveries").select("id").whereRef("recoveries.id", "=", "settlements.id"))),
      );
    if (below !== undefined) decided = decided.where("tx_nonce", "<", below);
    const rows = await decided
      .select(({ fn }) => [
        "tx_nonce",
        "transaction_hash as hash",
        "block_number",
        "block_hash",
        fn.max("concluded_at").as("concluded_at"),
        hasTxNonce("settlements.tx_nonce").as("has_this_tx_nonce"),
      ])
      // All rows of a txNonce, even from several blocks: a page that ended between them would lose the rest.
      .where("tx_nonce", "in", decided.select("tx_nonce").distinct().orderBy("tx_nonce", "desc").limit(limit))
      .groupBy(["tx_nonce", "transaction_hash", "block_number", "block_hash"])
      .orderBy("tx_nonce", "desc")
      .orderBy("block_number", "desc")
      .execute();
    return rows.flatMap(toConcluded);
  };
}

/** Implements {@link Recoveries.concludedForwards}. */
export function createConcludedForwards(db: Kysely<LedgerTables>): Recoveries["concludedForwards"] {
  return async (chainId, recoverer, { from = 0, below, limit }) => {
    let query = db
      .selectFrom("recoveries")
      .innerJoin("settlements", "settlements.id", "recoveries.id")
      .select([
        "recoveries.tx_nonce",
        "transaction_hash as hash",
        "block_number",
        "block_hash",
        "concluded_at",
        hasTxNonce("recoveries.tx_nonce").as("has_this_tx_nonce"),
      ])
      .where("recoveries.chain_id", "=", chainId)
      .where("recoveries.recoverer", "=", lowerCase(recoverer))
      .where("recoveries.state", "=", "forwarded")
      .where("recoveries.tx_nonce", ">=", from)
      .orderBy("recoveries.tx_nonce", "desc")
      .limit(limit);
    if (below !== undefined) query = query.where("recoveries.tx_nonce", "<", below);
    return (await query.execute()).flatMap(toConcluded);
  };
}

/** True if the transaction that decided a settlement has this txNonce. */
function hasTxNonce(txNonce: "settlements.tx_nonce" | "recoveries.tx_nonce") {
  return sql<unknown>`exists (select 1 from attempts
    where attempts.hash = settlements.transaction_hash and attempts.tx_nonce = ${sql.ref(txNonce)})`;
}

function toConcluded(row: {
  tx_nonce: number | null;
  hash: ConcludedTransaction["hash"];
  block_number: number | null;
  block_hash: ConcludedTransaction["blockHash"] | null;
  concluded_at: number | null;
  has_this_tx_nonce: unknown;
}): ConcludedTransaction[] {
  const { tx_nonce: txNonce, hash, block_number, block_hash: blockHash, concluded_at } = row;
  if (txNonce === null || block_number === null || blockHash === null) return [];
  return [
    {
      txNonce,
      hash,
      blockHash,
      blockNumber: BigInt(block_number),
      concludedAt: concluded_at ?? 0,
      // SQLite has no booleans; it returns 0 or 1.
      hasThisTxNonce: Boolean(row.has_this_tx_nonce),
    },
  ];
}
