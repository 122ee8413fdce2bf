import type { ExpressionBuilder, Kysely, Transaction } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Cursor } from "../protocol/settlement-query.ts";
import type { Database } from "./database/database.ts";
import { inTransaction, repeatable } from "./database/transactions.ts";
import { dayOf } from "./gas-spending.ts";
import type { AttemptsTable, LedgerTables, SettlementsTable } from "./rows.ts";
import { lockOperator } from "./tx-nonces.ts";

/** The account and number of a transaction. */
type TxNonce = { chain_id: number; operator: Address; tx_nonce: number };

/**
 * Takes old settlements out of the ledger, for the caller to keep elsewhere. What is removed must be what was kept: every
 * row is compared with its {@link serializeRow} first, and stays when it has changed since.
 *
 * A settlement may go when nothing can happen to it any more, and its claim, its conclusion and the end of its
 * authorization are all before a moment:
 * - `settled` and handed over: a success that was not is still owed to its organization;
 * - `failed`, and not to be looked at again.
 *
 * Settlements that were recovered, or are being recovered, stay: the row in `recoveries` records which log has been paid out.
 */
export type LedgerArchive = {
  /** A page of settlements that may go, the oldest first; it may be empty and have a next one all the same. */
  findSettlements(
    before: number,
    page: { limit: number; after: Cursor | null },
  ): Promise<{ rows: SettlementsTable[]; next: Cursor | null }>;
  /** The transactions signed with some txNonces. */
  findAttempts(txNonces: readonly TxNonce[]): Promise<AttemptsTable[]>;
  /** Removes those of the settlements, by their ids, that are in the ledger as given. How many, in one transaction. */
  removeSettlements(serialized: ReadonlyMap<Hex, string>): Promise<number>;
  /** Removes those of the transactions, by their hashes, that no settlement in the ledger needs any more. How many. */
  removeAttempts(serialized: ReadonlyMap<Hex, string>): Promise<number>;
  /**
   * Removes what the ledger noted before a moment and needs no more, and which no archive keeps: payers, whose rows are locks
   * and come back with their next payment, and what settling has cost on the days before.
   */
  removeNotes(before: number): Promise<void>;
};

export function createLedgerArchive(database: Database): LedgerArchive {
  const db = database.$extendTables<LedgerTables>();
  return {
    async findSettlements(before, { limit, after }) {
      let query = db
        .selectFrom("settlements")
        .selectAll()
        .where("claimed_at", "<", before)
        .where("concluded_at", "<", before)
        .where(isFinished)
        .where(isNotRecovered)
        .orderBy("claimed_at")
        .orderBy("id")
        .limit(limit);
      if (after !== null) {
        query = query.where(({ eb, refTuple, tuple }) =>
          eb(refTuple("claimed_at", "id"), ">", tuple(after.claimedAt, after.id)),
        );
      }
      const page = await query.execute();
      const last = page.at(-1);
      return {
        // It is text of any length up to 78 digits, which databases do not compare as numbers.
        rows: page.filter(({ valid_last }) => BigInt(valid_last) * 1_000n < BigInt(before)),
        next: page.length < limit || last === undefined ? null : { claimedAt: last.claimed_at, id: last.id },
      };
    },

    findAttempts: (txNonces) => findAttempts(db, txNonces),

    removeSettlements: (serialized) =>
      inTransaction(db, async (transaction) => {
        const ids = [...serialized.keys()];
        if (ids.length === 0) return 0;
        await lockOperatorsOf(
          transaction,
          await transaction
            .selectFrom("settlements")
            .select(["chain_id", "operator"])
            .where("id", "in", ids)
            .execute(),
        );
        // Written back unchanged, so that no other transaction changes them before this one ends.
        const current = await transaction
          .updateTable("settlements")
          .set((row) => ({ failure: row.ref("failure") }))
          .where("id", "in", ids)
          .returningAll()
          .execute();
        const same = current.filter((row) => serializeRow(row) === serialized.get(row.id));
        if (same.length === 0) return 0;
        const removed = await transaction
          .deleteFrom("settlements")
          .where(
            "id",
            "in",
            same.map(({ id }) => id),
          )
          .where(isFinished)
          .where(isNotRecovered)
          .executeTakeFirstOrThrow();
        return Number(removed.numDeletedRows);
      }),

    removeAttempts: (serialized) =>
      inTransaction(db, async (transaction) => {
        const hashes = [...serialized.keys()];
        if (hashes.length === 0) return 0;
        await lockOperatorsOf(
          transaction,
          await transaction
            .selectFrom("attempts")
            .select(["chain_id", "operator"])
            .where("hash", "in", hashes)
            .execute(),
        );
        const current = await transaction
          .selectFrom("attempts")
          .selectAll()
          .where("hash", "in", hashes)
          .execute();
        const same = current.filter((row) => serializeRow(row) === serialized.get(row.hash));
        if (same.length === 0) return 0;
        const removed = await transaction
          .deleteFrom("attempts")
          .where(
            "hash",
            "in",
            same.map(({ hash }) => hash),
          )
          .where("state", "in", ["mined", "superseded"])
          .where(isUnused)
          .executeTakeFirstOrThrow();
        return Number(removed.numDeletedRows);
      }),

    async removeNotes(before) {
      await repeatable(() => db.deleteFrom("gas_spending").where("day", "<", dayOf(before)).execute());
      let removed: number;
      do removed = await removePayers(db, before);
      while (removed > 0);
    },
  };
}

async function findAttempts(
  db: Kysely<LedgerTables>,
  txNonces: readonly TxNonce[],
): Promise<AttemptsTable[]> {
  if (txNonces.length === 0) return [];
  return (
    db
      .selectFrom("attempts")
      .selectAll()
      .where(({ eb, or, and }) =>
        or(
          txNonces.map(({ chain_id, operator, tx_nonce }) =>
            and([
              eb("chain_id", "=", chain_id),
              eb("operator", "=", operator),
              eb("tx_nonce", "=", tx_nonce),
            ]),
          ),
        ),
      )
      // In the words of the index.
      .where("state", "in", ["mined", "superseded"])
      .orderBy("chain_id")
      .orderBy("operator")
      .orderBy("tx_nonce")
      .orderBy("hash")
      .execute()
  );
}

/** Payers that are removed in one statement: whoever claims for one of them waits for it. */
const payersAtOnce = 5_000;

/** Those that a claim has locked stay: to wait for it, with others locked, could be to wait for each other. */
async function removePayers(db: Kysely<LedgerTables>, before: number): Promise<number> {
  const { numDeletedRows } = await repeatable(() =>
    db
      .deleteFrom("accounts")
      .where(({ eb, refTuple, selectFrom }) =>
        eb(
          refTuple("chain_id", "asset", "payer"),
          "in",
          selectFrom("accounts as old")
            .select(["old.chain_id", "old.asset", "old.payer"])
            .where("old.claimed_at", "<", before)
            .limit(payersAtOnce)
            .forUpdate()
            .skipLocked()
            .$asTuple("chain_id", "asset", "payer"),
        ),
      )
      .executeTakeFirstOrThrow(),
  );
  return Number(numDeletedRows);
}

/** A row as it is compared and kept: JSON of its columns, in the order of their names. */
export function serializeRow(row: SettlementsTable | AttemptsTable): string {
  return JSON.stringify(Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))));
}

type OnSettlements = ExpressionBuilder<LedgerTables, "settlements">;

function isFinished({ eb, or, and }: OnSettlements) {
  return or([
    and([eb("state", "=", "settled"), eb("delivered_at", "is not", null)]),
    and([eb("state", "=", "failed"), eb("next_look_at", "is", null)]),
  ]);
}

function isNotRecovered({ not, exists, selectFrom }: OnSettlements) {
  return not(
    exists(selectFrom("recoveries").select("recoveries.id").whereRef("recoveries.id", "=", "settlements.id")),
  );
}

/** Returns true if a transaction's txNonce has neither a settlement nor a recovery in the ledger. */
function isUnused({ not, and, exists, selectFrom }: ExpressionBuilder<LedgerTables, "attempts">) {
  return and([
    not(
      exists(
        selectFrom("settlements")
          .select("settlements.id")
          .whereRef("settlements.chain_id", "=", "attempts.chain_id")
          .whereRef("settlements.operator", "=", "attempts.operator")
          .whereRef("settlements.tx_nonce", "=", "attempts.tx_nonce"),
      ),
    ),
    not(
      exists(
        selectFrom("recoveries")
          .select("recoveries.id")
          .whereRef("recoveries.chain_id", "=", "attempts.chain_id")
          .whereRef("recoveries.recoverer", "=", "attempts.operator")
          .whereRef("recoveries.tx_nonce", "=", "attempts.tx_nonce"),
      ),
    ),
  ]);
}

/** Locks the operators of some rows, in one order everywhere: two transactions must not wait for each other. */
async function lockOperatorsOf(
  transaction: Transaction<LedgerTables>,
  operators: readonly { chain_id: number; operator: Address }[],
): Promise<void> {
  const distinct = new Map(operators.map((row) => [`${row.chain_id} ${row.operator}`, row]));
  for (const [, row] of [...distinct].sort(([a], [b]) => (a < b ? -1 : 1))) {
    await lockOperator(transaction, { chainId: row.chain_id, operator: row.operator });
  }
}
