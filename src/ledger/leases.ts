import type { Kysely } from "kysely";
import { repeatable } from "../database/retrying.ts";
import { inTransaction } from "../database/transaction.ts";
import type { Hex } from "../protocol/hex.ts";
import type { Ledger } from "./ledger.ts";
import type { RetryQueue } from "./retry-queue.ts";
import { lowerCase } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/** Expired leases are kept for so many lease times: an instance that merely stalled may still renew them. */
const graceLeases = 10;

/** A lease belongs to a holder of an instance: holders of different instances may have the same name. */
export function createLeases(
  db: Kysely<LedgerTables>,
  retryQueue: RetryQueue,
  { instanceId, now, leaseMs }: { instanceId: string; now: () => number; leaseMs: number },
): Pick<Ledger, "acquireLease" | "releaseLease" | "findLease" | "renewLeases" | "markDelivered"> {
  return {
    async acquireLease(id, holder) {
      const time = now();
      const lease = { holder, instance_id: instanceId, expires_at: time + leaseMs };
      const acquired = await repeatable(() =>
        db
          .insertInto("leases")
          .values({ id: lowerCase(id), ...lease })
          .onConflict((conflict) =>
            conflict
              .column("id")
              .doUpdateSet(lease)
              .where((held) =>
                held.or([
                  held("leases.expires_at", "<=", time),
                  held.and([held("leases.holder", "=", holder), held("leases.instance_id", "=", instanceId)]),
                ]),
              ),
          )
          .returning("id")
          .executeTakeFirst(),
      );
      if (acquired === undefined) return false;
      retryQueue.forget(workNameOf(id, holder));
      return true;
    },

    releaseLease: (id, holder) =>
      retryQueue.run(workNameOf(id, holder), async () => {
        await repeatable(() =>
          db
            .deleteFrom("leases")
            .where("id", "=", lowerCase(id))
            .where("holder", "=", holder)
            .where("instance_id", "=", instanceId)
            .execute(),
        );
      }),

    async findLease(id) {
      const row = await db
        .selectFrom("leases")
        .select(["instance_id", "expires_at"])
        .where("id", "=", lowerCase(id))
        .executeTakeFirst();
      const expiresAt = Number(row?.expires_at);
      if (row === undefined || expiresAt <= now()) return null;
      return { isOwn: row.instance_id === instanceId, expiresAt };
    },

    async renewLeases() {
      await retryQueue.drain();
      await inTransaction(db, async (transaction) => {
        const time = now();
        await transaction
          .updateTable("leases")
          .set({ expires_at: time + leaseMs })
          .where("instance_id", "=", instanceId)
          .execute();
        await transaction
          .updateTable("idempotency")
          .set({ lease_expires_at: time + leaseMs })
          .where("instance_id", "=", instanceId)
          .where("answer", "is", null)
          .execute();
        await transaction
          .deleteFrom("leases")
          .where("expires_at", "<=", time - graceLeases * leaseMs)
          .execute();
      });
    },

    markDelivered: (id, holder) =>
      retryQueue.run(workNameOf(id, holder), () =>
        inTransaction(db, async (transaction) => {
          const given = await transaction
            .deleteFrom("leases")
            .where("id", "=", lowerCase(id))
            .where("holder", "=", holder)
            .where("instance_id", "=", instanceId)
            .returning("id")
            .executeTakeFirst();
          if (given === undefined) return;
          await transaction
            .updateTable("settlements")
            .set({ delivered_at: now() })
            .where("id", "=", given.id)
            .where("state", "in", ["settled", "recovered"])
            .where("delivered_at", "is", null)
            .execute();
        }),
      ),
  };
}

function workNameOf(id: Hex, holder: string): string {
  return `lease ${lowerCase(id)} ${holder}`;
}
