import type { Migration } from "./migration.ts";

export const resources: Migration = {
  name: "0005-resources",
  summary: "what organizations were paid for, where DISCOVERY is on",

  async up(db) {
    await db.schema
      .createTable("resources")
      .addColumn("organization_id", "text", (column) => column.notNull())
      .addColumn("resource_key", "text", (column) => column.notNull())
      .addColumn("document", "text", (column) => column.notNull())
      .addColumn("updated_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("resources_pkey", ["organization_id", "resource_key"])
      .execute();
    await db.schema
      .createIndex("resources_by_time")
      .on("resources")
      .columns(["organization_id", "updated_at"])
      .execute();
  },
};
