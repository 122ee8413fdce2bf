import { sql } from "kysely";
import type { Migration } from "./migration.ts";

export const operations: Migration = {
  name: "0002-operations",
  summary: "what several instances share; limits, an audit trail and listings for organizations",

  async up(db) {
    // A row that a claim updates before it looks at what a payer's balance backs: claims of one payer take turns.
    await db.schema
      .createTable("accounts")
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("asset", "text", (column) => column.notNull())
      .addColumn("payer", "text", (column) => column.notNull())
      .addColumn("claimed_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("accounts_key", ["chain_id", "asset", "payer"])
      .execute();

    // On Postgres: see postgres/commits.ts.
    await db.schema
      .createTable("commits")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("fenced", "integer", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .execute();

    await db.schema.alterTable("recipients").addColumn("minimum_amount", "text").execute();
    await db.schema.alterTable("recipients").addColumn("daily_gas_budget", "text").execute();
    await db.schema
      .createTable("gas_spending")
      .addColumn("organization_id", "text", (column) => column.notNull())
      .addColumn("network", "text", (column) => column.notNull())
      .addColumn("day", "bigint", (column) => column.notNull())
      // In gwei: a day's sum in wei may need more than 64 bits.
      .addColumn("gwei", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("gas_spending_key", ["organization_id", "network", "day"])
      .execute();

    await db.schema
      .alterTable("organizations")
      .addColumn("changes", "bigint", (column) => column.notNull().defaultTo(0))
      .execute();
    await db.schema
      .createTable("audit")
      .addColumn("organization_id", "text", (column) => column.notNull().references("organizations.id"))
      .addColumn("change", "bigint", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("actor", "text", (column) => column.notNull())
      .addColumn("action", "text", (column) => column.notNull())
      .addColumn("details", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("audit_key", ["organization_id", "change"])
      .execute();
    await db.schema.alterTable("api_keys").addColumn("replaced_by", "text").execute();

    // What people have said about an operator's txNonces.
    await db.schema
      .createTable("operator_changes")
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("operator", "text", (column) => column.notNull())
      .addColumn("at", "bigint", (column) => column.notNull())
      .addColumn("actor", "text", (column) => column.notNull())
      .addColumn("from_tx_nonce", "bigint", (column) => column.notNull())
      .addColumn("to_tx_nonce", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("operator_changes_key", ["chain_id", "operator", "to_tx_nonce"])
      .execute();

    // Listings go by time, newest first, of one organization or of all.
    await db.schema
      .createIndex("settlements_of_organization")
      .on("settlements")
      .columns(["organization_id", "claimed_at", "id"])
      .execute();
    await db.schema
      .createIndex("settlements_unfinished")
      .on("settlements")
      .columns(["organization_id", "network"])
      .where(sql.ref("state"), "=", sql.lit("submitted"))
      .execute();
    await db.schema
      .createIndex("settlements_by_time")
      .on("settlements")
      .columns(["claimed_at", "id"])
      .execute();
  },
};
