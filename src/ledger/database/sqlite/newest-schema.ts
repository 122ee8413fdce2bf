/**
 * The schema after all migrations, for an empty SQLite database. Applying them one by one takes 25 ms of each start.
 * Written by newest-schema.test.ts.
 */
export const newestSchema = `
BEGIN;
CREATE TABLE "kysely_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);
CREATE TABLE "kysely_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);
CREATE TABLE "recoveries" ("id" text primary key references "settlements" ("id"), "chain_id" bigint not null, "proof_hash" text not null, "proof_log_index" bigint not null, "proof_block" bigint not null, "state" text not null, "recoverer" text, "tx_nonce" bigint, "problem" text, "queued_at" bigint not null, constraint "recoveries_proof" unique ("chain_id", "proof_hash", "proof_log_index"));
CREATE INDEX "recoveries_state" on "recoveries" ("chain_id", "state");
CREATE TABLE "operator_nonces" ("chain_id" bigint not null, "operator" text not null, "next_tx_nonce" bigint not null, constraint "operator_nonces_key" primary key ("chain_id", "operator"));
CREATE TABLE "attempts" ("hash" text primary key, "chain_id" bigint not null, "operator" text not null, "tx_nonce" bigint not null, "kind" text not null, "raw" text not null, "max_fee_per_gas" text not null, "max_priority_fee_per_gas" text not null, "state" text not null, "created_at" bigint not null, constraint "attempts_operator" foreign key ("chain_id", "operator") references "operator_nonces" ("chain_id", "operator"));
CREATE INDEX "attempts_transaction" on "attempts" ("chain_id", "operator", "state", "tx_nonce");
CREATE TABLE "leases" ("id" text primary key, "holder" text not null, "instance_id" text not null, "expires_at" bigint not null);
CREATE TABLE "idempotency" ("organization_id" text not null, "idempotency_key" text not null, "body_hash" text not null, "answer" text, "instance_id" text not null, "lease_expires_at" bigint not null, "expires_at" bigint not null, constraint "idempotency_primary" primary key ("organization_id", "idempotency_key"));
CREATE INDEX "idempotency_expiry" on "idempotency" ("expires_at");
CREATE INDEX "idempotency_running" on "idempotency" ("instance_id") where "answer" is null;
CREATE TABLE "organizations" ("id" text primary key, "name" text not null, "created_at" bigint not null, "changes" bigint default 0 not null);
CREATE TABLE "recipients" ("organization_id" text not null references "organizations" ("id"), "network" text not null, "recipient" text not null, "minimum_amount" text, "daily_gas_budget" text, "refuse_payers_with_code" integer default 0 not null, constraint "recipients_key" primary key ("organization_id", "network"));
CREATE TABLE "api_keys" ("id" text primary key, "organization_id" text not null references "organizations" ("id"), "hmac" text not null, "scopes" text not null, "created_at" bigint not null, "expires_at" bigint, "revoked_at" bigint, "replaced_by" text);
CREATE INDEX "api_keys_organization" on "api_keys" ("organization_id");
CREATE TABLE "accounts" ("chain_id" bigint not null, "asset" text not null, "payer" text not null, "claimed_at" bigint not null, constraint "accounts_key" primary key ("chain_id", "asset", "payer"));
CREATE TABLE "commits" ("id" text primary key, "fenced" integer not null, "at" bigint not null);
CREATE TABLE "gas_spending" ("organization_id" text not null, "network" text not null, "day" bigint not null, "gwei" bigint not null, "gwei_with_code" bigint default 0 not null, constraint "gas_spending_key" primary key ("organization_id", "network", "day"));
CREATE TABLE "audit" ("organization_id" text not null references "organizations" ("id"), "change" bigint not null, "at" bigint not null, "actor" text not null, "action" text not null, "details" text not null, constraint "audit_key" primary key ("organization_id", "change"));
CREATE TABLE "operator_changes" ("chain_id" bigint not null, "operator" text not null, "at" bigint not null, "actor" text not null, "from_tx_nonce" bigint not null, "to_tx_nonce" bigint not null, constraint "operator_changes_key" primary key ("chain_id", "operator", "to_tx_nonce"));
CREATE TABLE "pepper" ("id" integer primary key, "hmac" text not null, "set_at" bigint not null);
CREATE TABLE "resources" ("organization_id" text not null, "resource_key" text not null, "document" text not null, "updated_at" bigint not null, constraint "resources_pkey" primary key ("organization_id", "resource_key"));
CREATE INDEX "resources_by_time" on "resources" ("organization_id", "updated_at");
CREATE TABLE "settlements" ("id" text primary key, "organization_id" text not null, "network" text not null, "chain_id" bigint not null, "asset" text not null, "payer" text not null, "nonce" text not null, "digest" text not null, "amount" text not null, "valid_first" text not null, "valid_last" text not null, "signature" text not null, "recipient" text not null, "state" text not null, "operator" text not null, "tx_nonce" bigint not null, "transaction_hash" text not null, "block_number" bigint, "block_hash" text, "failure" text, "claimed_block" bigint not null, "used_by_block" bigint, "next_look_at" bigint, "claimed_at" bigint not null, "concluded_at" bigint, "delivered_at" bigint, "payer_code" text, "method" text default 'exact-eip3009' not null, "nonce_space" text default '' not null, "payload" text, "pay_to" text, "maximum" text, "contract" text, constraint "settlements_authorization" unique ("chain_id", "nonce_space", "payer", "nonce"));
CREATE INDEX "settlements_reservation" on "settlements" ("chain_id", "asset", "payer", "state", "block_number");
CREATE INDEX "settlements_transaction" on "settlements" ("chain_id", "operator", "tx_nonce");
CREATE INDEX "settlements_failures" on "settlements" ("chain_id", "next_look_at") where "state" = 'failed';
CREATE INDEX "settlements_of_organization" on "settlements" ("organization_id", "claimed_at", "id");
CREATE INDEX "settlements_unfinished" on "settlements" ("organization_id", "network") where "state" = 'submitted';
CREATE INDEX "settlements_by_time" on "settlements" ("claimed_at", "id");
CREATE INDEX "settlements_by_network" on "settlements" ("organization_id", "network", "claimed_at", "id");
CREATE INDEX "settlements_not_settled" on "settlements" ("organization_id", "state", "claimed_at", "id") where "state" <> 'settled';
CREATE INDEX "settlements_by_payer" on "settlements" ("payer", "organization_id", "claimed_at", "id");
CREATE INDEX "settlements_by_payer_code" on "settlements" ("chain_id", "payer_code", "state", "concluded_at") where "payer_code" is not null;
CREATE INDEX "settlements_with_payer_code" on "settlements" ("organization_id", "network", "state", "concluded_at") where "payer_code" is not null;
CREATE TABLE "gifts" ("chain_id" bigint not null, "asset" text not null, "payer" text not null, "sponsor" text not null, "tx_nonce" bigint not null, "value" text not null, "raw" text not null, "hash" text not null, "max_fee_per_gas" text not null, "max_priority_fee_per_gas" text not null, "day" bigint not null, "given_at" bigint not null, "organization_id" text, constraint "gifts_key" primary key ("chain_id", "asset", "payer"), constraint "gifts_tx_nonce" unique ("chain_id", "sponsor", "tx_nonce"));
CREATE INDEX "gifts_of_day" on "gifts" ("chain_id", "sponsor", "day");
CREATE TABLE "channels" ("chain_id" bigint not null, "id" text not null, "network" text not null, "organization_id" text not null, "payer" text not null, "receiver" text not null, "asset" text not null, "opened_at" bigint not null, "withdrawal_amount" text, "withdrawal_ends_at" bigint, constraint "channels_key" primary key ("chain_id", "id"));
CREATE INDEX "channels_of_organization" on "channels" ("organization_id", "chain_id", "receiver");
CREATE TABLE "channel_moves" ("settlement_id" text not null, "chain_id" bigint not null, "channel_id" text not null, "kind" text not null, "amount" text not null, constraint "channel_moves_key" primary key ("settlement_id", "channel_id", "kind"));
CREATE INDEX "channel_moves_of_channel" on "channel_moves" ("chain_id", "channel_id");
INSERT INTO kysely_migration VALUES ('0001-initial', strftime('%FT%TZ')), ('0002-operations', strftime('%FT%TZ')), ('0003-listings', strftime('%FT%TZ')), ('0004-pepper', strftime('%FT%TZ')), ('0005-resources', strftime('%FT%TZ')), ('0006-payers', strftime('%FT%TZ')), ('0007-payer-code', strftime('%FT%TZ')), ('0008-methods', strftime('%FT%TZ')), ('0009-pay-to', strftime('%FT%TZ')), ('0010-permit2', strftime('%FT%TZ')), ('0011-gifts', strftime('%FT%TZ')), ('0012-gift-organizations', strftime('%FT%TZ')), ('0013-contracts', strftime('%FT%TZ')), ('0014-channels', strftime('%FT%TZ'));
INSERT INTO kysely_migration_lock VALUES ('migration_lock', 0);
COMMIT;
`;
