import type { Migration } from "./migration.ts";

export const pepper: Migration = {
  name: "0004-pepper",
  summary: "which pepper the API keys are hashed with, so that a wrong one is noticed",

  async up(db) {
    // One row at most.
    await db.schema
      .createTable("pepper")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("hmac", "text", (column) => column.notNull())
      .addColumn("set_at", "bigint", (column) => column.notNull())
      .execute();
  },
};
