import type { Migration } from "./migration.ts";

export const payers: Migration = {
  name: "0006-payers",
  summary:
    "an index for listing a payer's settlements of all organizations, in place of the one by organization",

  async up(db) {
    await db.schema.dropIndex("settlements_by_payer").execute();
    // By payer first: of one organization it finds as much, and it tells which organizations a payer has paid.
    await db.schema
      .createIndex("settlements_by_payer")
      .on("settlements")
      .columns(["payer", "organization_id", "claimed_at", "id"])
      .execute();
  },
};
