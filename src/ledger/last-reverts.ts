import type { Kysely } from "kysely";
import type { Ledger } from "./ledger.ts";
import { lowerCase } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/** Makes {@link Ledger.lastReverts}. Each part is read from one end of the index by account, state and block. */
export function createLastReverts(db: Kysely<LedgerTables>): Ledger["lastReverts"] {
  return async ({ chainId, asset, payer }, limit) => {
    const ofAccount = db
      .selectFrom("settlements")
      .where("chain_id", "=", chainId)
      .where("asset", "=", lowerCase(asset))
      .where("payer", "=", lowerCase(payer));
    const lastIn = (state: "settled" | "recovered") =>
      ofAccount
        .where("state", "=", state)
        .select(({ fn, lit }) => fn.coalesce(fn.max("block_number"), lit(-1)).as("last"));
    const rows = await ofAccount
      .select("concluded_at")
      .where("state", "=", "failed")
      .where("block_number", ">", lastIn("settled"))
      .where("block_number", ">", lastIn("recovered"))
      .orderBy("block_number", "desc")
      .limit(limit)
      .execute();
    return rows.flatMap(({ concluded_at }) => concluded_at ?? []);
  };
}
