import { sql } from "kysely";
import type { Migration } from "./migration.ts";

export const listings: Migration = {
  name: "0003-listings",
  summary:
    "indexes for listing an organization's settlements by network, by payer, and those that are not settled",

  async up(db) {
    for (const [name, column] of [
      ["settlements_by_network", "network"],
      ["settlements_by_payer", "payer"],
    ] as const) {
      await db.schema
        .createIndex(name)
        .on("settlements")
        .columns(["organization_id", column, "claimed_at", "id"])
        .execute();
    }
    // Nearly all are settled; finding one of those takes no index.
    await db.schema
      .createIndex("settlements_not_settled")
      .on("settlements")
      .columns(["organization_id", "state", "claimed_at", "id"])
      .where(sql.ref("state"), "<>", sql.lit("settled"))
      .execute();
  },
};
