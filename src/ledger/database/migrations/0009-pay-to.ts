import type { Migration } from "./migration.ts";

export const payTo: Migration = {
  name: "0009-pay-to",
  summary: "where payments go that do not go through the facilitator contract",

  async up(db) {
    await db.schema.alterTable("settlements").addColumn("pay_to", "text").execute();
  },
};
