import { type Kysely, type SqlBool, sql, type Transaction } from "kysely";
import { dayMs } from "../protocol/moments.ts";
import { together } from "../util/concurrency.ts";
import type { DatabaseClock } from "./database/database.ts";
import { allAtOnce, inTransaction, repeatable, UnansweredError } from "./database/transactions.ts";
import { leaseEnd, timeOf } from "./lease-time.ts";
import type { IdempotencyEntry, KeptAnswer, Leases } from "./ledger.ts";
import type { RetryQueue } from "./retry-queue.ts";
import type { LedgerTables } from "./rows.ts";

/** How long a success can be repeated. */
export const keptMs = dayMs;

/** The start of a refusal as stored by earlier versions; such a request is decided anew. */
const refusalOfEarlierVersions = '{"kind":"invalid"%';

/** A key to bind to a body; `expiresAt` is set when that is tried. */
type Beginning = { organizationId: string; key: string; bodyHash: string; expiresAt: number };

/**
 * Implements the idempotency keys. A running request is leased like an authorization: if its instance dies, its key is
 * free after `leaseMs`. An instance answers and frees only its own requests, so one that stalled for longer than its
 * lease does not touch the request that replaced it.
 */
export function createIdempotency(
  db: Kysely<LedgerTables>,
  retryQueue: RetryQueue,
  undelivered: Undelivered,
  { instanceId, clock, leaseMs }: { instanceId: string; clock: DatabaseClock; leaseMs: number },
): Pick<Leases, "beginIdempotent" | "answerIdempotent" | "abandonIdempotent"> {
  const begin = together(beginAll, {
    most: 64,
    anyNumber: true,
    keyOf: ({ organizationId, key }: Beginning) => nameOfKey(organizationId, key),
  });

  /** Binds keys in one transaction; otherwise SQLite would sync the disk for each. */
  function beginAll(beginnings: readonly Beginning[]): Promise<IdempotencyEntry[]> {
    return inTransaction(db, async (transaction) => {
      const time = clock.now();
      for (const beginning of beginnings) beginning.expiresAt = time + keptMs;
      const bound = await allAtOnce(
        transaction,
        inOrderOfKeys(beginnings, (beginning) => beginning).map((beginning) =>
          binding(transaction, beginning, time),
        ),
      );
      const isBound = new Set(bound.flat().map((row) => nameOfKey(row.organization_id, row.idempotency_key)));
      if (isBound.size > 0) await sweep(transaction, time, isBound.size);
      const entries: IdempotencyEntry[] = [];
      for (const beginning of beginnings) {
        const name = nameOfKey(beginning.organizationId, beginning.key);
        if (isBound.has(name)) retryQueue.forget(name);
        entries.push(isBound.has(name) ? { status: "new" } : await findEntry(transaction, beginning));
      }
      return entries;
    });
  }

  /** Returns the statement that binds a key if it is free. */
  function binding(
    transaction: Transaction<LedgerTables>,
    { organizationId, key, bodyHash, expiresAt }: Beginning,
    time: number,
  ) {
    const leaseTime = timeOf(clock);
    const leaseExpiresAt = leaseEnd(clock, leaseMs);
    const isFree = sql<SqlBool>`(idempotency.expires_at <= ${time}
      or coalesce(idempotency.answer like ${refusalOfEarlierVersions}, idempotency.lease_expires_at <= ${leaseTime}))`;
    return transaction
      .insertInto("idempotency")
      .columns([
        ...(["organization_id", "idempotency_key", "body_hash"] as const),
        ...(["instance_id", "lease_expires_at", "expires_at"] as const),
      ])
      .expression(
        transaction
          .selectNoFrom(({ cast, val }) => [
            cast<string>(val(organizationId), "text").as("organization_id"),
            cast<string>(val(key), "text").as("idempotency_key"),
            cast<string>(val(bodyHash), "text").as("body_hash"),
            cast<string>(val(instanceId), "text").as("instance_id"),
            leaseExpiresAt.as("lease_expires_at"),
            cast<number>(val(expiresAt), "bigint").as("expires_at"),
          ])
          // As with leases: a request for a key that is held locks nothing.
          .where(({ not, exists }) =>
            not(
              exists(
                transaction
                  .selectFrom("idempotency")
                  .select("idempotency.idempotency_key")
                  .where("idempotency.organization_id", "=", organizationId)
                  .where("idempotency.idempotency_key", "=", key)
                  .where((row) => row.not(isFree)),
              ),
            ),
          ),
      )
      .onConflict((conflict) =>
        conflict
          .columns(["organization_id", "idempotency_key"])
          .doUpdateSet({
            answer: null,
            body_hash: bodyHash,
            instance_id: instanceId,
            lease_expires_at: leaseExpiresAt,
            expires_at: expiresAt,
          })
          .where(isFree),
      )
      .returning(["organization_id", "idempotency_key"]);
  }

  return {
    async beginIdempotent(organizationId, key, bodyHash) {
      await undelivered.catchUp(nameOfKey(organizationId, key));
      const beginning: Beginning = { organizationId, key, bodyHash, expiresAt: 0 };
      try {
        return await begin(beginning);
      } catch (error) {
        // It may be bound anyway, and would be renewed as long as the process lives. Its `expiresAt` tells it from
        // another request's binding.
        if (error instanceof UnansweredError) {
          const { expiresAt } = beginning;
          retryQueue.add(`${nameOfKey(organizationId, key)} ${expiresAt}`, async () => {
            const begun = abandoning(db, { organizationId, key }, instanceId);
            await repeatable(() => begun.where("expires_at", "=", expiresAt).execute());
          });
        }
        throw error;
      }
    },

    answerIdempotent: (kept) =>
      retryQueue.run(nameOfKey(kept.organizationId, kept.key), async () => {
        await repeatable(() => keeping(db, kept, { instanceId, time: clock.now() }).execute());
      }),

    abandonIdempotent: (organizationId, key) =>
      retryQueue.run(nameOfKey(organizationId, key), async () => {
        await repeatable(() => abandoning(db, { organizationId, key }, instanceId).execute());
      }),
  };
}

/** Reads the binding of a key that was not free. */
async function findEntry(
  transaction: Transaction<LedgerTables>,
  { organizationId, key, bodyHash }: Beginning,
): Promise<IdempotencyEntry> {
  const row = await transaction
    .selectFrom("idempotency")
    .select(["body_hash", "answer"])
    .where("organization_id", "=", organizationId)
    .where("idempotency_key", "=", key)
    .executeTakeFirstOrThrow();
  if (row.body_hash !== bodyHash) return { status: "other_body" };
  return row.answer === null ? { status: "running" } : { status: "answered", answer: row.answer };
}

/** Sorts items by key, so that two transactions cannot deadlock. */
export function inOrderOfKeys<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => { organizationId: string; key: string },
): Item[] {
  const nameOf = (item: Item) => {
    const { organizationId, key } = keyOf(item);
    return nameOfKey(organizationId, key);
  };
  return [...items].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** Returns the statement that stores a response under its key, if an instance still runs the key's request. */
export function keeping(
  db: Kysely<LedgerTables>,
  { organizationId, key, answer }: KeptAnswer,
  { instanceId, time }: { instanceId: string; time: number },
) {
  return db
    .updateTable("idempotency")
    .set({ answer, expires_at: time + keptMs })
    .where("organization_id", "=", organizationId)
    .where("idempotency_key", "=", key)
    .where("instance_id", "=", instanceId)
    .where("answer", "is", null);
}

/** Returns the statement that frees a key whose request an instance is running. */
export function abandoning(
  db: Kysely<LedgerTables>,
  { organizationId, key }: Omit<KeptAnswer, "answer">,
  instanceId: string,
) {
  return db
    .deleteFrom("idempotency")
    .where("organization_id", "=", organizationId)
    .where("idempotency_key", "=", key)
    .where("instance_id", "=", instanceId)
    .where("answer", "is", null);
}

export function nameOfKey(organizationId: string, key: string): string {
  return `idempotency ${organizationId} ${key}`;
}

/**
 * Deletes up to two expired rows for every new one, so that the table holds about one day and no request pays much.
 * Rows locked by another transaction are skipped: it may be waiting for a signature.
 */
export async function sweep(transaction: Transaction<LedgerTables>, time: number, rows = 1): Promise<void> {
  await transaction
    .deleteFrom("idempotency")
    // Repeated, because another request may have reused rows between the search and the deletion.
    .where("expires_at", "<=", time)
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple("organization_id", "idempotency_key"),
        "in",
        selectFrom("idempotency as old")
          .select(["old.organization_id", "old.idempotency_key"])
          .where("old.expires_at", "<=", time)
          .orderBy("old.expires_at")
          .limit(2 * rows)
          .forUpdate()
          .skipLocked()
          .$asTuple("organization_id", "idempotency_key"),
      ),
    )
    .execute();
}

/**
 * Successes that this process has delivered but the database has not recorded yet. While the database is unreachable,
 * their leases expire. So before a right is granted again, the deliveries known here are recorded.
 */
export type Undelivered = {
  /** Records a delivery, which ends the rights with these names. If this throws, it is retried under `work`. */
  record(names: readonly string[], work: string, deliver: () => Promise<void>): Promise<void>;
  /** Records the delivery that ends the right with this name, if there is one. Throws if that fails. */
  catchUp(name: string): Promise<void>;
};

export function createUndelivered(retryQueue: RetryQueue): Undelivered {
  const recordings = new Map<string, () => Promise<void>>();
  return {
    record(names, work, deliver) {
      const recording = () =>
        retryQueue.run(work, async () => {
          await deliver();
          for (const name of names) if (recordings.get(name) === recording) recordings.delete(name);
        });
      for (const name of names) recordings.set(name, recording);
      return recording();
    },
    async catchUp(name) {
      await recordings.get(name)?.();
    },
  };
}
