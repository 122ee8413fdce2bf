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

/** Expired leases are kept for this many lease times, because a stalled instance may still renew them. */
const graceLeases = 10;

type Lease = { id: Hex; holder: string };

/** A delivered success, with the response to keep, if any. */
type Delivered = Lease & { kept: KeptAnswer | undefined };

/** One per batch for each authorization, which has one holder at a time. */
const ofOneId = { most: 64, keyOf: ({ id }: Lease) => id } satisfies TogetherOptions<Lease>;

/** The instance that owns the leases, and their duration in milliseconds. */
export type LeaseOptions = {
  instanceId: string;
  clock: DatabaseClock;
  leaseMs: number;
  /** Called when a success was delivered by a holder that had lost the lease; another request may have delivered it too. */
  onLostDelivery?: (id: Hex) => void;
};

/** Implements the leases. A holder name is scoped to its instance; other instances may use the same name. */
export function createLeases(
  db: Kysely<LedgerTables>,
  retryQueue: RetryQueue,
  undelivered: Undelivered,
  options: LeaseOptions,
): Pick<Leases, "acquireLease" | "releaseLease" | "findLease" | "renewLeases" | "markDelivered"> {
  const { instanceId, clock, leaseMs, onLostDelivery } = options;
  const acquire = together(acquireAll, ofOneId);
  const free = together((leases: readonly Lease[]) => freeAll(db, leases, instanceId), ofOneId);
  // In batches of any size: no caller waits for it, but if the process is killed before it, a success is delivered twice.
  const deliver = together((leases: readonly Delivered[]) => deliverAll(db, leases, options), {
    ...ofOneId,
    anyNumber: true,
  });
  // Requests that wait for leases of other instances poll this.
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
            // A conflict locks the row and is written to disk even if it grants no lease: polling requests would block
            // those that deliver, release or renew it.
            .where(({ not, exists, selectFrom }) => {
              const held = selectFrom("leases")
                .select("leases.id")
                .whereRef("leases.id", "=", "asked.column1");
              return not(exists(held.where(({ not }) => not(isFreeTo("asked.column2")))));
            })
            // Always in the same order, so that two statements cannot deadlock.
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
        // It may have been taken anyway, and would be renewed as long as the process lives.
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
      // The next holder may trigger a second recording meanwhile. The later one finds the lease gone, but its response
      // may arrive first.
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

/** Reads the leases of some ids, in that order; undefined for those that are free. */
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

/** Releases the leases of these holders. */
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
          // In the same order as taking leases, so that two statements cannot deadlock.
          .orderBy("leases.id")
          .forUpdate(),
      )
      .execute(),
  );
  return leases.map(() => undefined);
}

/** Records deliveries whose lease was still held; returns for each one if it was. */
async function deliverAll(
  db: Kysely<LedgerTables>,
  leases: readonly Delivered[],
  { instanceId, clock }: LeaseOptions,
): Promise<boolean[]> {
  const [answer] = await inTransaction(db, async (transaction) => {
    const time = clock.now();
    const isHeld = areHeld(leases, instanceId);
    return withCommit(transaction, [
      // Locked, so that nobody takes an expired lease from here on and delivers the same success.
      transaction
        .selectFrom("leases")
        .select("leases.id")
        .where(isHeld)
        // In the order of taking leases; the keys below are in the order of beginning them.
        .orderBy("leases.id")
        .forUpdate(),
      transaction
        .updateTable("settlements")
        .set({ delivered_at: time })
        // In any state: its block may have vanished since the success was sent to the caller.
        .where("id", "in", (held) => held.selectFrom("leases").select("leases.id").where(isHeld))
        .where("delivered_at", "is", null),
      // Only with the lease, so that a key never repeats a success that belonged to another request.
      ...byKey(leases).flatMap(({ id, holder, kept }) => {
        const own = sql<SqlBool>`leases.instance_id = ${instanceId} and leases.id = ${id} and leases.holder = ${holder}`;
        return [
          keeping(transaction, kept, { instanceId, time }).where(({ exists, selectFrom }) =>
            exists(selectFrom("leases").select("leases.id").where(own)),
          ),
          // If the lease was lost, the key would otherwise be held and renewed as long as the process lives.
          abandoning(transaction, kept, instanceId),
        ];
      }),
      transaction.deleteFrom("leases").where(isHeld),
    ]);
  });
  const held = new Set((await answer).rows.map(({ id }) => id));
  return leases.map(({ id }) => held.has(id));
}

/** The condition that a row is one of these leases, held by this instance. */
function areHeld(leases: readonly Lease[], instanceId: string) {
  // Pairs are compared as concatenated text; the databases look the ids up first, so few are compared.
  const asked = padded(leases);
  return sql<SqlBool>`leases.instance_id = ${instanceId}
    and leases.id in (${sql.join(asked.map(({ id }) => id))})
    and leases.id || leases.holder in (${sql.join(asked.map(({ id, holder }) => id + holder))})`;
}

/** Extends everything this instance holds, and deletes leases that expired long ago. */
async function renewAll(
  db: Kysely<LedgerTables>,
  { instanceId, clock, leaseMs }: LeaseOptions,
): Promise<void> {
  /** Selects leases that no other transaction has locked; that one is releasing or renewing them already. */
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
  // Separate statements and no transaction: looking up a lost commit would take longer than a lease lasts. All are
  // urgent, even the deletion, because there is no other renewal while it runs.
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
 * Frees all payments and idempotency keys held by requests. For a copy of a ledger whose requests are gone: otherwise
 * each would be blocked until its lease expires.
 */
export async function dropLeases(db: Kysely<LedgerTables>): Promise<void> {
  await db.deleteFrom("leases").execute();
  await db.deleteFrom("idempotency").where("answer", "is", null).execute();
}

/** Returns those with a response to keep, in the order of their keys. */
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
