import { type Expression, type Kysely, type SqlBool, sql } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import { padded, type TogetherOptions, together } from "../util/concurrency.ts";
import type { DatabaseClock } from "./database/database.ts";
import { inTransaction, repeatable, UnansweredError, urgently, withCommit } from "./database/transactions.ts";
import { abandoning, inOrderOfKeys, keeping, nameOfKey, type Undelivered } from "./idempotency.ts";
import { leaseEnd, timeOf } from "./lease-time.ts";
import type { KeptAnswer, Leases } from "./ledger.ts";
import type { RetryQueue } from "./retry-queue.ts";
import { type LedgerTables, lowerCase } from "./rows.ts";

/** Expired leases are kept for so many lease times: an instance that merely stalled may still renew them. */
const graceLeases = 10;

/** A right that one request asks for, or has. */
type Lease = { id: Hex; holder: string };

/** A success that was handed over. */
type Delivered = Lease & { kept: KeptAnswer | undefined };

/** An authorization has one holder at a time. */
const ofOneId = { most: 64, keyOf: ({ id }: Lease) => id } satisfies TogetherOptions<Lease>;

/** Whose leases they are, and how long they last, in milliseconds. */
export type LeaseOptions = {
  instanceId: string;
  clock: DatabaseClock;
  leaseMs: number;
  /** Called when a success was handed over by a holder who had lost the lease: another request may have been given it too. */
  onLostDelivery?: (id: Hex) => void;
};

/** A lease belongs to a holder of an instance: holders of different instances may have the same name. */
export function createLeases(
  db: Kysely<LedgerTables>,
  retryQueue: RetryQueue,
  undelivered: Undelivered,
  options: LeaseOptions,
): Pick<Leases, "acquireLease" | "releaseLease" | "findLease" | "renewLeases" | "markDelivered"> {
  const { instanceId, clock, leaseMs, onLostDelivery } = options;
  const acquire = together(acquireAll, ofOneId);
  const free = together((leases: readonly Lease[]) => freeAll(db, leases, instanceId), ofOneId);
  // Several at once: no caller waits for it, but where the process is killed before it, a success is given twice.
  const deliver = together((leases: readonly Delivered[]) => deliverAll(db, leases, options), {
    ...ofOneId,
    anyNumber: true,
  });
  // Those who wait for the leases of other instances ask all the time.
  const find = together((ids: readonly Hex[]) => findAll(db, ids, clock), { most: 64, anyNumber: true });

  async function acquireAll(leases: readonly Lease[]): Promise<boolean[]> {
    const time = timeOf(clock);
    const expiry = { instance_id: instanceId, expires_at: leaseEnd(clock, leaseMs) };
    const pairs = sql.join(leases.map(({ id, holder }) => sql`(${id}, ${holder})`));
    const isFreeTo = (holder: "asked.column2" | "excluded.holder") => sql<SqlBool>`(
      leases.expires_at <= ${time} or (leases.instance_id = ${instanceId} and leases.holder = ${sql.ref(holder)}))`;
    const acquired = await repeatable(() =>
      db
        .insertInto("leases")
        .columns(["id", "holder", "instance_id", "expires_at"])
        .expression(({ selectFrom }) =>
          selectFrom(sql<{ column1: Hex; column2: string }>`(values ${pairs})`.as("asked"))
            .select(({ cast, val }) => [
              "asked.column1",
              "asked.column2",
              cast<string>(val(instanceId), "text").as("instance_id"),
              expiry.expires_at.as("expires_at"),
            ])
            // A conflict locks the row, and is written to the disk, even where it gives no lease: those who ask again
            // and again would keep everybody from it who hands over, gives up or renews what is asked for.
            .where(({ not, exists, selectFrom }) => {
              const held = selectFrom("leases")
                .select("leases.id")
                .whereRef("leases.id", "=", "asked.column1");
              return not(exists(held.where(({ not }) => not(isFreeTo("asked.column2")))));
            })
            // In one order everywhere: two statements must not wait for each other.
            .orderBy("asked.column1"),
        )
        .onConflict((conflict) =>
          conflict
            .column("id")
            .doUpdateSet({ holder: (row) => row.ref("excluded.holder"), ...expiry })
            .where(isFreeTo("excluded.holder")),
        )
        .returning("id")
        .execute(),
    );
    const ids = new Set(acquired.map(({ id }) => id));
    return leases.map(({ id }) => ids.has(id));
  }

  function release(id: Hex, holder: string): Promise<void> {
    return free({ id: lowerCase(id), holder });
  }

  return {
    async acquireLease(id, holder) {
      await undelivered.catchUp(nameOfRight(id));
      try {
        const isAcquired = await acquire({ id: lowerCase(id), holder });
        if (isAcquired) retryQueue.forget(workNameOf(id, holder));
        return isAcquired;
      } catch (error) {
        // It may have been taken all the same, and would be renewed for as long as the process lives.
        if (error instanceof UnansweredError) {
          retryQueue.add(workNameOf(id, holder), () => release(id, holder));
        }
        throw error;
      }
    },

    releaseLease: (id, holder) => retryQueue.run(workNameOf(id, holder), () => release(id, holder)),

    async findLease(id) {
      const row = await find(lowerCase(id));
      if (row === undefined) return null;
      return { isOwn: row.instance_id === instanceId, expiresAt: Number(row.expires_at) };
    },

    renewLeases: () => renewAll(db, options),

    markDelivered(id, holder, kept) {
      const rights = [nameOfRight(id)];
      if (kept !== undefined) rights.push(nameOfKey(kept.organizationId, kept.key));
      // Recorded again by who takes the lease meanwhile, it is found gone by the second, whose answer may be the first to come.
      let wasHeld = false;
      let underWay = 0;
      return undelivered.record(rights, workNameOf(id, holder), async () => {
        underWay++;
        try {
          if (await deliver({ id: lowerCase(id), holder, kept })) wasHeld = true;
        } finally {
          underWay--;
        }
        if (!wasHeld && underWay === 0) onLostDelivery?.(id);
      });
    },
  };
}

/** Who holds what, in the order in which it is asked. */
async function findAll(db: Kysely<LedgerTables>, ids: readonly Hex[], clock: DatabaseClock) {
  const columns = ["id", "instance_id", "expires_at"] as const;
  const rows = await db
    .selectFrom("leases")
    .select(columns)
    .where("id", "in", padded(ids))
    .where("expires_at", ">", timeOf(clock))
    .execute();
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => found.get(id));
}

/** Gives up what these holders have. */
async function freeAll(
  db: Kysely<LedgerTables>,
  leases: readonly Lease[],
  instanceId: string,
): Promise<undefined[]> {
  const isHeld = areHeld(leases, instanceId);
  await repeatable(() =>
    db
      .deleteFrom("leases")
      .where("id", "in", (held) =>
        held
          .selectFrom("leases")
          .select("leases.id")
          .where(isHeld)
          // Like those who take leases: two statements must not wait for each other.
          .orderBy("leases.id")
          .forUpdate(),
      )
      .execute(),
  );
  return leases.map(() => undefined);
}

/** Records what was handed over, where the lease was held still; tells for each whether it was. */
async function deliverAll(
  db: Kysely<LedgerTables>,
  leases: readonly Delivered[],
  { instanceId, clock }: LeaseOptions,
): Promise<boolean[]> {
  const [answer] = await inTransaction(db, async (transaction) => {
    const time = clock.now();
    const isHeld = areHeld(leases, instanceId);
    return withCommit(transaction, [
      // From here on no lease that has run out can be taken by another, who would then give the same success.
      transaction
        .selectFrom("leases")
        .select("leases.id")
        .where(isHeld)
        // In the order of those who take leases, as the keys below in that of those who begin them.
        .orderBy("leases.id")
        .forUpdate(),
      transaction
        .updateTable("settlements")
        .set({ delivered_at: time })
        // In any state: its block may have vanished since the success was written to the caller.
        .where("id", "in", (held) => held.selectFrom("leases").select("leases.id").where(isHeld))
        .where("delivered_at", "is", null),
      // With it, so that no key gives a success again which was another request's.
      ...byKey(leases).flatMap(({ id, holder, kept }) => {
        const own = sql<SqlBool>`leases.instance_id = ${instanceId} and leases.id = ${id} and leases.holder = ${holder}`;
        return [
          keeping(transaction, kept, { instanceId, time }).where(({ exists, selectFrom }) =>
            exists(selectFrom("leases").select("leases.id").where(own)),
          ),
          // Where the lease was lost: the key would be held, and renewed, for as long as the process lives.
          abandoning(transaction, kept, instanceId),
        ];
      }),
      transaction.deleteFrom("leases").where(isHeld),
    ]);
  });
  const held = new Set((await answer).rows.map(({ id }) => id));
  return leases.map(({ id }) => held.has(id));
}

/** Which rows are leases that these holders of this instance have. */
function areHeld(leases: readonly Lease[], instanceId: string) {
  // Pairs as one text each: databases look the ids up, and compare few pairs.
  const asked = padded(leases);
  return sql<SqlBool>`leases.instance_id = ${instanceId}
    and leases.id in (${sql.join(asked.map(({ id }) => id))})
    and leases.id || leases.holder in (${sql.join(asked.map(({ id, holder }) => id + holder))})`;
}

/** Extends what this instance holds, and forgets what ran out long ago. */
async function renewAll(
  db: Kysely<LedgerTables>,
  { instanceId, clock, leaseMs }: LeaseOptions,
): Promise<void> {
  /** Leases that none is working on: those that are being given up or renewed already are left to whom does so. */
  const unlocked = (
    column: "instance_id" | "expires_at",
    operator: "=" | "<=",
    value: string | Expression<number>,
  ) =>
    db
      .selectFrom("leases as unlocked")
      .select("unlocked.id")
      .where(`unlocked.${column}`, operator, value)
      .forUpdate()
      .skipLocked();
  // Each by itself, and no transaction: what became of a lost commit would be asked for longer than a lease lasts.
  // All are urgent, the last as well: while it takes long, there is no other renewal.
  await Promise.all([
    repeatable(() =>
      urgently(
        db,
        db
          .updateTable("leases")
          .set({ expires_at: leaseEnd(clock, leaseMs) })
          .where("id", "in", unlocked("instance_id", "=", instanceId)),
      ),
    ),
    repeatable(() =>
      urgently(
        db,
        db
          .updateTable("idempotency")
          .set({ lease_expires_at: leaseEnd(clock, leaseMs) })
          .where(({ eb, refTuple, selectFrom }) =>
            eb(
              refTuple("organization_id", "idempotency_key"),
              "in",
              selectFrom("idempotency as running")
                .select(["running.organization_id", "running.idempotency_key"])
                .where("running.instance_id", "=", instanceId)
                .where("running.answer", "is", null)
                .forUpdate()
                .skipLocked()
                .$asTuple("organization_id", "idempotency_key"),
            ),
          ),
      ),
    ),
  ]);
  await repeatable(() =>
    urgently(
      db,
      db
        .deleteFrom("leases")
        .where("id", "in", unlocked("expires_at", "<=", leaseEnd(clock, -graceLeases * leaseMs))),
    ),
  );
}

/**
 * Frees all payments and idempotency keys that requests hold: in a copy of a ledger whose requests are gone, where
 * each would be out of reach until its lease has run out.
 */
export async function dropLeases(db: Kysely<LedgerTables>): Promise<void> {
  await db.deleteFrom("leases").execute();
  await db.deleteFrom("idempotency").where("answer", "is", null).execute();
}

/** Those whose answers are kept, in the order of their keys. */
function byKey(leases: readonly Delivered[]) {
  const withKey = leases.flatMap(({ kept, ...lease }) => (kept === undefined ? [] : [{ ...lease, kept }]));
  return inOrderOfKeys(withKey, ({ kept }) => kept);
}

function nameOfRight(id: Hex): string {
  return `lease ${lowerCase(id)}`;
}

function workNameOf(id: Hex, holder: string): string {
  return `${nameOfRight(id)} ${holder}`;
}
