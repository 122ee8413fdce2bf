import type { Kysely, Transaction } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import { bytes32 } from "../protocol/primitives.ts";
import { keptMs, sweep } from "./idempotency.ts";
import type { ClaimOutcome, ClaimRequest, Claims } from "./ledger.ts";
import type { LedgerTables } from "./tables.ts";

/*
 * Identifiers are kept beside the keys of `Idempotency-Key`, and for as long. They have no answer of their own: that
 * is the settlement. They are written together with the claim, so that no two payments of one identifier are ever
 * claimed, whichever instances they come to and whichever of them dies; what was refused binds nothing.
 */

/** Makes {@link Claims.findIdentifier}. */
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

/** Binds the identifiers of requests that are being claimed; the places of those whose identifier is another payment's. */
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
    // In one order everywhere: two transactions that wait for each other's rows would never end.
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

/** No `Idempotency-Key` has a space in it. */
function keyOf(id: string): string {
  return `payment-identifier ${id}`;
}
