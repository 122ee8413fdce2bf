import { open } from "node:fs/promises";
import { dirname } from "node:path";
import type { ExpressionBuilder, Kysely } from "kysely";
import type { Cursor } from "../protocol/settlement-query.ts";
import { KitError } from "../util/errors.ts";
import { membersOf, parseJson } from "../util/json.ts";
import type { Database } from "./database/database.ts";
import { inTransaction, repeatable } from "./database/transactions.ts";
import { dayOf } from "./gas-spending.ts";
import type { AttemptsTable, LedgerTables, SettlementsTable } from "./rows.ts";
import { lockOperator, settlementsOf } from "./tx-nonces.ts";

/** The number of settlements that are archived at a time, and then removed in one transaction. */
const pageSize = 200;

/**
 * Moves old settlements out of the ledger, with the transactions that no remaining settlement needs. `keep` gets them as
 * lines of JSON and resolves when they are on disk; only then are they removed, except those that have changed meanwhile.
 *
 * A settlement can go if nothing can happen to it any more, and its claim, its conclusion and the end of its
 * authorization are all before a given time:
 * - `settled` and delivered: an undelivered success is still owed to its organization;
 * - `failed`, with no more checks due.
 *
 * Settlements that were or are being recovered stay: the row in `recoveries` records which log has been paid out.
 *
 * Other old rows that the ledger does not need go without being archived: payers, whose rows are only locks and come back
 * with their next payment, and the gas spending of earlier days.
 *
 * @param before unix milliseconds
 */
export async function archiveSettlements(
  database: Database,
  before: number,
  keep: (lines: readonly string[]) => Promise<void>,
): Promise<{ kept: number; removed: number }> {
  const db = database.$extendTables<LedgerTables>();
  const done = { kept: 0, removed: 0 };
  let next: Cursor | null | undefined;
  while (next !== null) {
    const page = await findSettlements(db, before, next);
    next = page.next;
    if (page.rows.length === 0) continue;
    const attempts = await findAttempts(db, page.rows);
    await keep([
      ...page.rows.map((row) => JSON.stringify({ kind: "settlement", row })),
      ...attempts.map((row) => JSON.stringify({ kind: "attempt", row })),
    ]);
    done.kept += page.rows.length;
    done.removed += await remove(db, page.rows, attempts);
  }
  await repeatable(() => db.deleteFrom("gas_spending").where("day", "<", dayOf(before)).execute());
  while ((await removePayers(db, before)) > 0);
  return done;
}

/** Finds a page of settlements that can go, oldest first. It may be empty and still have a next page. */
async function findSettlements(db: Kysely<LedgerTables>, before: number, after: Cursor | undefined) {
  let query = db
    .selectFrom("settlements")
    .selectAll()
    .where("claimed_at", "<", before)
    .where("concluded_at", "<", before)
    .where(isFinished)
    .where(isNotRecovered)
    .orderBy("claimed_at")
    .orderBy("id")
    .limit(pageSize);
  if (after !== undefined) {
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple("claimed_at", "id"), ">", tuple(after.claimedAt, after.id)),
    );
  }
  const page = await query.execute();
  const last = page.at(-1);
  const isLast = page.length < pageSize || last === undefined;
  return {
    // Text of up to 78 digits, which databases do not compare as numbers.
    rows: page.filter(({ valid_last }) => BigInt(valid_last) * 1_000n < BigInt(before)),
    next: isLast ? null : { claimedAt: last.claimed_at, id: last.id },
  };
}

/** Finds the transactions of some settlements that no other settlement needs. */
function findAttempts(
  db: Kysely<LedgerTables>,
  settlements: readonly SettlementsTable[],
): Promise<AttemptsTable[]> {
  const places = new Map(settlements.map((row) => [`${row.chain_id} ${row.operator} ${row.tx_nonce}`, row]));
  return (
    db
      .selectFrom("attempts")
      .selectAll()
      .where(({ eb, or, and }) =>
        or(
          [...places.values()].map(({ chain_id, operator, tx_nonce }) =>
            and([
              eb("chain_id", "=", chain_id),
              eb("operator", "=", operator),
              eb("tx_nonce", "=", tx_nonce),
            ]),
          ),
        ),
      )
      // Listed, to match the index.
      .where("state", "in", ["mined", "superseded"])
      .where(isUnusedWithout(settlements.map(({ id }) => id)))
      .orderBy("chain_id")
      .orderBy("operator")
      .orderBy("tx_nonce")
      .orderBy("hash")
      .execute()
  );
}

/**
 * Removes those rows that are in the ledger exactly as they were archived.
 *
 * @returns the number of removed settlements
 */
function remove(
  db: Kysely<LedgerTables>,
  settlements: readonly SettlementsTable[],
  attempts: readonly AttemptsTable[],
): Promise<number> {
  const kept = new Set([...settlements, ...attempts].map(asText));
  return inTransaction(db, async (transaction) => {
    // Always in the same order, so that two transactions cannot deadlock.
    const operators = new Map(settlements.map((row) => [`${row.chain_id} ${row.operator}`, row]));
    for (const [, row] of [...operators].sort(([a], [b]) => (a < b ? -1 : 1))) {
      await lockOperator(transaction, { chainId: row.chain_id, operator: row.operator });
    }
    // An update without a change, to lock the rows until this transaction ends.
    const current = await transaction
      .updateTable("settlements")
      .set((row) => ({ failure: row.ref("failure") }))
      .where(
        "id",
        "in",
        settlements.map(({ id }) => id),
      )
      .returningAll()
      .execute();
    const gone = current.filter((row) => kept.has(asText(row)));
    if (gone.length === 0) return 0;
    const ids = gone.map(({ id }) => id);
    const removed = await transaction
      .deleteFrom("settlements")
      .where("id", "in", ids)
      .where(isFinished)
      .where(isNotRecovered)
      .executeTakeFirstOrThrow();
    // A move without a settlement counts as made, so the moves of failed settlements must go with them.
    const failed = gone.filter(({ state }) => state === "failed").map(({ id }) => id);
    await transaction
      .deleteFrom("channel_moves")
      .where("settlement_id", "in", [noRow, ...failed])
      .execute();
    const sent = await transaction
      .selectFrom("attempts")
      .selectAll()
      .where("hash", "in", [noRow, ...attempts.map(({ hash }) => hash)])
      .execute();
    const hashes = sent.filter((row) => kept.has(asText(row))).map(({ hash }) => hash);
    await transaction
      .deleteFrom("attempts")
      .where("hash", "in", [noRow, ...hashes])
      .where("state", "in", ["mined", "superseded"])
      .where(isUnusedWithout([]))
      .execute();
    return Number(removed.numDeletedRows);
  });
}

/** A row as text for comparison, with its columns sorted by name. */
function asText(row: SettlementsTable | AttemptsTable): string {
  return JSON.stringify(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The number of payers removed per statement; a claim for one of them has to wait for it. */
const payersAtOnce = 5_000;

/** Skips payers that a claim has locked: waiting for them while holding others could deadlock. */
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

/** A hash that no row has, because SQL lists must not be empty. */
const noRow = "0x" as const;

/** Selects transactions whose txNonce has no recovery, and no settlement in the ledger other than `ids`. */
function isUnusedWithout(ids: readonly SettlementsTable["id"][]) {
  return (attempt: ExpressionBuilder<LedgerTables, "attempts">) => {
    const { not, and, exists, selectFrom } = attempt;
    return and([
      not(exists(settlementsOf(attempt).where("settlements.id", "not in", [noRow, ...ids]))),
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
  };
}

/** The first line of an archive. */
const head = { kind: "x402-kit settlements archive" };

/**
 * Opens an archive of JSON lines; the file is created with the first lines to keep. An existing archive is appended
 * to. If a run was killed, its last line may be cut short, and some lines may appear twice.
 *
 * @throws {KitError} when the file is something else; from the result, when it cannot be written
 */
export async function openArchive(file: string): Promise<(lines: readonly string[]) => Promise<void>> {
  const [first, last] = await readEnds(file);
  if (first !== undefined && membersOf(parseJson(first)).kind !== head.kind) {
    throw new KitError(`${file} exists, and is no archive of settlements`, {
      hints: ["Nothing was changed. Name a file that does not exist yet."],
    });
  }
  let start = first === undefined ? `${JSON.stringify(head)}\n` : last === "\n" ? "" : "\n";
  return async (lines) => {
    try {
      // Only the owner may read it, because it contains signatures.
      await using handle = await open(file, "a", 0o600);
      await handle.appendFile(`${start}${lines.join("\n")}\n`);
      await handle.sync();
      // A file name is durable only once its directory is synced.
      await using directory = await open(dirname(file), "r");
      await directory.sync();
      start = "";
    } catch (cause) {
      throw new KitError(`The archive ${file} could not be written, and what it lacks is in the ledger`, {
        cause,
        hints: ["Its folder must be there, with room, and may be written to. Then run this again."],
      });
    }
  };
}

/** Returns the first line of a file and its last character; empty if the file is missing or empty. */
async function readEnds(file: string): Promise<readonly (string | undefined)[]> {
  try {
    await using handle = await open(file, "r");
    const { size } = await handle.stat();
    const read = async (position: number) =>
      (await handle.read({ position, buffer: Buffer.alloc(256), length: Math.min(256, size - position) }))
        .buffer;
    if (size === 0) return [];
    const [first] = (await read(0)).toString().split(/\n|\0/, 1);
    return [first, (await read(size - 1)).toString("latin1", 0, 1)];
  } catch (cause) {
    if (Reflect.get(Object(cause), "code") === "ENOENT") return [];
    throw new KitError(`The archive ${file} could not be read`, { cause });
  }
}
