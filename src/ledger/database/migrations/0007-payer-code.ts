import { sql } from "kysely";
import type { Migration } from "./migration.ts";

export const payerCode: Migration = {
  name: "0007-payer-code",
  summary: "which code payers have, what settling for payers with code costs, and who refuses them",

  async up(db) {
    await db.schema.alterTable("settlements").addColumn("payer_code", "text").execute();
    await db.schema
      .alterTable("gas_spending")
      .addColumn("gwei_with_code", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable("recipients")
      .addColumn("refuse_payers_with_code", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    // How settles of payers with one code went lately, and of an organization's payers with code.
    await db.schema
      .createIndex("settlements_by_payer_code")
      .on("settlements")
      .columns(["chain_id", "payer_code", "state", "concluded_at"])
      .where(sql.ref("payer_code"), "is not", null)
      .execute();
    await db.schema
      .createIndex("settlements_with_payer_code")
      .on("settlements")
      .columns(["organization_id", "network", "state", "concluded_at"])
      .where(sql.ref("payer_code"), "is not", null)
      .execute();
  },
};
