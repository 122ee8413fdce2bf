import type { Kysely } from "kysely";
import type { Ledger } from "./ledger.ts";
import { lowerCase, toSettlement } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/** Makes {@link Ledger.list}. */
export function createList(db: Kysely<LedgerTables>): Ledger["list"] {
  return async ({ organizationId, network, state, payer, from, to }, { limit, after }) => {
    let query = db
      .selectFrom("settlements")
      .selectAll()
      .orderBy("claimed_at", "desc")
      .orderBy("id", "desc")
      // One more than is given out tells whether there is a next page.
      .limit(limit + 1);
    if (organizationId !== undefined) query = query.where("organization_id", "=", organizationId);
    if (network !== undefined) query = query.where("network", "=", network);
    if (state !== undefined) query = query.where("state", "=", state);
    if (payer !== undefined) query = query.where("payer", "=", lowerCase(payer));
    if (from !== undefined) query = query.where("claimed_at", ">=", from);
    if (to !== undefined) query = query.where("claimed_at", "<", to);
    if (after !== undefined) {
      const { claimedAt, id } = after;
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple("claimed_at", "id"), "<", tuple(claimedAt, id)),
      );
    }
    const settlements = (await query.execute()).map(toSettlement);
    const page = settlements.slice(0, limit);
    const last = page.at(-1);
    const next =
      settlements.length > limit && last !== undefined ? { claimedAt: last.claimedAt, id: last.id } : null;
    return { settlements: page, next };
  };
}
