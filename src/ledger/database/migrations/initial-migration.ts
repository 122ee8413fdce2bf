import { sql } from "kysely";
import type { Database } from "../database.ts";

/** One step of the schema. Once released, neither it nor its position ever changes. */
export type Migration = {
  /** A sequence number and a word. */
  name: string;
  /** Its purpose, for the operator. */
  summary: string;
  up(db: Database): Promise<void>;
};

export const initial: Migration = {
  name: "0001-initial",
  summary: "settlements, their transactions, leases, idempotency keys, organizations, recipients, API keys",
  async up(db) {
    await db.schema
      .createTable("settlements")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("organization_id", "text", (column) => column.notNull())
      .addColumn("network", "text", (column) => column.notNull())
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("asset", "text", (column) => column.notNull())
      .addColumn("payer", "text", (column) => column.notNull())
      .addColumn("authorization_nonce", "text", (column) => column.notNull())
      .addColumn("digest", "text", (column) => column.notNull())
      .addColumn("value", "text", (column) => column.notNull())
      .addColumn("valid_after", "text", (column) => column.notNull())
      .addColumn("valid_before", "text", (column) => column.notNull())
      .addColumn("signature", "text", (column) => column.notNull())
      .addColumn("recipient", "text", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("operator", "text", (column) => column.notNull())
      .addColumn("tx_nonce", "bigint", (column) => column.notNull())
      .addColumn("transaction_hash", "text", (column) => column.notNull())
      .addColumn("block_number", "bigint")
      .addColumn("block_hash", "text")
      .addColumn("failure", "text")
      .addColumn("claimed_block", "bigint", (column) => column.notNull())
      .addColumn("used_by_block", "bigint")
      .addColumn("next_look_at", "bigint")
      .addColumn("claimed_at", "bigint", (column) => column.notNull())
      .addColumn("concluded_at", "bigint")
      .addColumn("delivered_at", "bigint")
      // The id is a hash of these four. If two ids were ever computed for one authorization, the second insert fails.
      .addUniqueConstraint("settlements_authorization", ["chain_id", "asset", "payer", "authorization_nonce"])
      .execute();
    // Finds what is reserved on a payer's balance, even among millions of old settlements.
    await db.schema
      .createIndex("settlements_reservation")
      .on("settlements")
      .columns(["chain_id", "asset", "payer", "state", "block_number"])
      .execute();
    await db.schema
      .createIndex("settlements_transaction")
      .on("settlements")
      .columns(["chain_id", "operator", "tx_nonce"])
      .execute();
    // Failed settlements are checked again for a while; the many settled ones stay out of the index.
    await db.schema
      .createIndex("settlements_failures")
      .on("settlements")
      .columns(["chain_id", "next_look_at"])
      .where(sql.ref("state"), "=", sql.lit("failed"))
      .execute();

    await db.schema
      .createTable("recoveries")
      .addColumn("id", "text", (column) => column.primaryKey().references("settlements.id"))
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("proof_hash", "text", (column) => column.notNull())
      .addColumn("proof_log_index", "bigint", (column) => column.notNull())
      .addColumn("proof_block", "bigint", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("recoverer", "text")
      .addColumn("tx_nonce", "bigint")
      .addColumn("problem", "text")
      .addColumn("queued_at", "bigint", (column) => column.notNull())
      // One log proves at most one payment, whatever else goes wrong.
      .addUniqueConstraint("recoveries_proof", ["chain_id", "proof_hash", "proof_log_index"])
      .execute();
    await db.schema.createIndex("recoveries_state").on("recoveries").columns(["chain_id", "state"]).execute();

    await db.schema
      .createTable("operator_nonces")
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("operator", "text", (column) => column.notNull())
      .addColumn("next_tx_nonce", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("operator_nonces_key", ["chain_id", "operator"])
      .execute();

    await db.schema
      .createTable("attempts")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("operator", "text", (column) => column.notNull())
      .addColumn("tx_nonce", "bigint", (column) => column.notNull())
      .addColumn("kind", "text", (column) => column.notNull())
      .addColumn("raw", "text", (column) => column.notNull())
      .addColumn("max_fee_per_gas", "text", (column) => column.notNull())
      .addColumn("max_priority_fee_per_gas", "text", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addForeignKeyConstraint("attempts_operator", ["chain_id", "operator"], "operator_nonces", [
        "chain_id",
        "operator",
      ])
      .execute();
    await db.schema
      .createIndex("attempts_transaction")
      .on("attempts")
      .columns(["chain_id", "operator", "state", "tx_nonce"])
      .execute();

    await db.schema
      .createTable("leases")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("holder", "text", (column) => column.notNull())
      .addColumn("instance_id", "text", (column) => column.notNull())
      .addColumn("expires_at", "bigint", (column) => column.notNull())
      .execute();

    await db.schema
      .createTable("idempotency")
      .addColumn("organization_id", "text", (column) => column.notNull())
      .addColumn("idempotency_key", "text", (column) => column.notNull())
      .addColumn("body_hash", "text", (column) => column.notNull())
      .addColumn("answer", "text")
      .addColumn("instance_id", "text", (column) => column.notNull())
      .addColumn("lease_expires_at", "bigint", (column) => column.notNull())
      .addColumn("expires_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("idempotency_primary", ["organization_id", "idempotency_key"])
      .execute();
    await db.schema.createIndex("idempotency_expiry").on("idempotency").column("expires_at").execute();
    await db.schema
      .createIndex("idempotency_running")
      .on("idempotency")
      .column("instance_id")
      .where(sql.ref("answer"), "is", null)
      .execute();

    await db.schema
      .createTable("organizations")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .execute();

    await db.schema
      .createTable("recipients")
      .addColumn("organization_id", "text", (column) => column.notNull().references("organizations.id"))
      .addColumn("network", "text", (column) => column.notNull())
      .addColumn("recipient", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("recipients_key", ["organization_id", "network"])
      .execute();

    await db.schema
      .createTable("api_keys")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("organization_id", "text", (column) => column.notNull().references("organizations.id"))
      .addColumn("hmac", "text", (column) => column.notNull())
      .addColumn("scopes", "text", (column) => column.notNull())
      .addColumn("created_at", "bigint", (column) => column.notNull())
      .addColumn("expires_at", "bigint")
      .addColumn("revoked_at", "bigint")
      .execute();
    await db.schema.createIndex("api_keys_organization").on("api_keys").column("organization_id").execute();
  },
};
