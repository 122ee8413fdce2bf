import { type Kysely, sql } from "kysely";
import type { Outcomes, SettlesOf } from "./ledger.ts";
import { lowerCase } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/** More of one state change nothing; a payer may have millions. */
const mostOfState = 1_000;

/** Makes {@link Outcomes.recentSettles}. Each state is read from the newest end of an index. */
export function createRecentSettles(db: Kysely<LedgerTables>): Outcomes["recentSettles"] {
  return async (of, since) => {
    const count = (state: "submitted" | "settled" | "failed") =>
      db
        .selectFrom(selectNewest(db, of, state, since).as("newest"))
        .select(({ fn }) => [
          sql.lit(state).as("state"),
          fn.countAll<number | bigint | string>().as("settles"),
          fn.count<number | bigint | string>("payer_code").distinct().as("codes"),
          fn.max("concluded_at").as("last"),
        ]);
    const rows = await count("submitted").unionAll(count("settled")).unionAll(count("failed")).execute();
    const find = (state: string) => rows.find((row) => row.state === state);
    const reverted = find("failed");
    const counted = of.kind === "organization" ? reverted?.codes : reverted?.settles;
    return {
      underWay: Number(find("submitted")?.settles ?? 0),
      settled: Number(find("settled")?.settles ?? 0),
      reverted: Number(counted ?? 0),
      lastRevertedAt: reverted?.last == null ? null : Number(reverted.last),
    };
  };
}

/** The newest settlements of a state; of those under way, all. */
function selectNewest(
  db: Kysely<LedgerTables>,
  of: SettlesOf,
  state: "submitted" | "settled" | "failed",
  since: number,
) {
  const inState = db
    .selectFrom("settlements")
    .select(["payer_code", "concluded_at"])
    .where("state", "=", state)
    .limit(mostOfState);
  const lately =
    state === "submitted"
      ? inState
      : inState.where("concluded_at", ">", since).orderBy("concluded_at", "desc");
  switch (of.kind) {
    case "payer": {
      const ofAccount = inState
        .where("chain_id", "=", of.chainId)
        .where("asset", "=", lowerCase(of.asset))
        .where("payer", "=", lowerCase(of.payer));
      if (state === "submitted") return ofAccount;
      // By block, as their index has them.
      const newest = ofAccount.orderBy("block_number", "desc").as("of_account");
      return db
        .selectFrom(newest)
        .select(["of_account.payer_code", "of_account.concluded_at"])
        .where("of_account.concluded_at", ">", since);
    }
    case "code":
      return lately.where("chain_id", "=", of.chainId).where("payer_code", "=", lowerCase(of.payerCode));
    case "organization":
      return lately
        .where("organization_id", "=", of.organizationId)
        .where("network", "=", of.network)
        .where("payer_code", "is not", null);
  }
}
