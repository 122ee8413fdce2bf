import { type Kysely, sql } from "kysely";
import type { Outcomes } from "./ledger.ts";
import type { Recoveries } from "./recoveries.ts";
import { lowerCase } from "./rows.ts";
import type { ConcludedTransaction } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";

/** Makes {@link Outcomes.concludedSettles}. */
export function createConcludedSettles(db: Kysely<LedgerTables>): Outcomes["concludedSettles"] {
  return async (chainId, operator, { from = 0, below, limit }) => {
    let decided = db
      .selectFrom("settlements")
      .where("chain_id", "=", chainId)
      .where("operator", "=", lowerCase(operator))
      .where("tx_nonce", ">=", from)
      .where("state", "in", ["settled", "failed"])
      .where("block_hash", "is not", null)
      // As where they are reopened: what is being recovered would be found as vanished again and again.
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
      // All of one txNonce, however many blocks decided them: a page that ended between them would lose the rest.
      .where("tx_nonce", "in", decided.select("tx_nonce").distinct().orderBy("tx_nonce", "desc").limit(limit))
      .groupBy(["tx_nonce", "transaction_hash", "block_number", "block_hash"])
      .orderBy("tx_nonce", "desc")
      .orderBy("block_number", "desc")
      .execute();
    return rows.flatMap(toConcluded);
  };
}

/** Makes {@link Recoveries.concludedForwards}. */
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

/** Whether the transaction that decided a settlement is one of this txNonce. */
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
      ...{ txNonce, hash, blockHash },
      blockNumber: BigInt(block_number),
      concludedAt: concluded_at ?? 0,
      // SQLite has no booleans: it answers 0 or 1.
      hasThisTxNonce: Boolean(row.has_this_tx_nonce),
    },
  ];
}
