import { type Kysely, type SqlBool, sql, type Transaction } from "kysely";
import { repeatable } from "../database/retrying.ts";
import { allAtOnce, inTransaction } from "../database/transaction.ts";
import type { Ledger } from "./ledger.ts";
import type { RetryQueue } from "./retry-queue.ts";
import { lowerCase } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/** How long an answer is given again. */
export const keptMs = 24 * 60 * 60 * 1000;

/**
 * A running request is leased like an authorization: when its instance dies, its key is free after `leaseMs`.
 * An instance answers and frees only what it runs itself, so that one that stalled for longer than its lease does
 * not touch the request that took its place.
 */
export function createIdempotency(
  db: Kysely<LedgerTables>,
  retryQueue: RetryQueue,
  { instanceId, now, leaseMs }: { instanceId: string; now: () => number; leaseMs: number },
): Pick<Ledger, "beginIdempotent" | "answerIdempotent" | "abandonIdempotent"> {
  return {
    beginIdempotent: (organizationId, key, bodyHash) =>
      inTransaction(db, async (transaction) => {
        const time = now();
        const bound = {
          body_hash: bodyHash,
          answer: null,
          instance_id: instanceId,
          lease_expires_at: time + leaseMs,
          expires_at: time + keptMs,
        };
        const begun = await transaction
          .insertInto("idempotency")
          .values({ organization_id: organizationId, idempotency_key: key, ...bound })
          .onConflict((conflict) =>
            conflict
              .columns(["organization_id", "idempotency_key"])
              .doUpdateSet(bound)
              .where((row) =>
                row.or([
                  row("idempotency.expires_at", "<=", time),
                  row.and([
                    row("idempotency.answer", "is", null),
                    row("idempotency.lease_expires_at", "<=", time),
                  ]),
                ]),
              ),
          )
          .returning("organization_id")
          .executeTakeFirst();
        if (begun !== undefined) {
          retryQueue.forget(workNameOf(organizationId, key));
          await sweep(transaction, time);
          return { status: "new" };
        }
        const row = await transaction
          .selectFrom("idempotency")
          .select(["body_hash", "answer"])
          .where("organization_id", "=", organizationId)
          .where("idempotency_key", "=", key)
          .executeTakeFirstOrThrow();
        if (row.body_hash !== bodyHash) return { status: "other_body" };
        return row.answer === null ? { status: "running" } : { status: "answered", answer: row.answer };
      }),

    async answerIdempotent(organizationId, key, answer, right) {
      let isStored = false;
      await retryQueue.run(workNameOf(organizationId, key), async () => {
        isStored = await inTransaction(db, async (transaction) => {
          const time = now();
          const store = transaction
            .updateTable("idempotency")
            .set({ answer, expires_at: time + keptMs })
            .where("organization_id", "=", organizationId)
            .where("idempotency_key", "=", key)
            .where("instance_id", "=", instanceId)
            .where("answer", "is", null)
            .returning("organization_id");
          if (right === undefined) return (await store.executeTakeFirst()) !== undefined;
          const held = { id: lowerCase(right.id), holder: right.holder, instance_id: instanceId };
          const isHeld = sql<SqlBool>`leases.id = ${held.id} and leases.holder = ${held.holder}
            and leases.instance_id = ${held.instance_id}`;
          const [, stored] = await allAtOnce(transaction, [
            // From here on no other request can take it, and answer too, before this one has had its time to.
            transaction
              .updateTable("leases")
              .set({ expires_at: time + leaseMs })
              .where(isHeld),
            store.where(({ exists, selectFrom }) =>
              exists(selectFrom("leases").select("leases.id").where(isHeld)),
            ),
          ]);
          return stored.length > 0;
        });
      });
      return isStored;
    },

    abandonIdempotent: (organizationId, key) =>
      retryQueue.run(workNameOf(organizationId, key), async () => {
        await repeatable(() =>
          db
            .deleteFrom("idempotency")
            .where("organization_id", "=", organizationId)
            .where("idempotency_key", "=", key)
            .where("instance_id", "=", instanceId)
            .where("answer", "is", null)
            .execute(),
        );
      }),
  };
}

function workNameOf(organizationId: string, key: string): string {
  return `idempotency ${organizationId} ${key}`;
}

/**
 * Every new row takes up to two expired ones away: the table stays as large as a day is, and no request pays much. Those
 * that another transaction has are left to it, which may be waiting for a signature.
 */
export async function sweep(transaction: Transaction<LedgerTables>, time: number): Promise<void> {
  await transaction
    .deleteFrom("idempotency")
    // Again, for rows that another request has made its own between the search and the deletion.
    .where("expires_at", "<=", time)
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple("organization_id", "idempotency_key"),
        "in",
        selectFrom("idempotency as old")
          .select(["old.organization_id", "old.idempotency_key"])
          .where("old.expires_at", "<=", time)
          .orderBy("old.expires_at")
          .limit(2)
          .forUpdate()
          .skipLocked()
          .$asTuple("organization_id", "idempotency_key"),
      ),
    )
    .execute();
}
