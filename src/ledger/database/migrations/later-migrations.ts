import { sql } from "kysely";
import { dayMs } from "../../../protocol/moments.ts";
import type { Database } from "../database.ts";
import { contractOf } from "../open-contracts.ts";
import { initial, type Migration } from "./initial-migration.ts";

export const operations: Migration = {
  name: "0002-operations",
  summary: "what several instances share; limits, an audit trail and listings for organizations",

  async up(db) {
    // A claim updates this row before it checks a payer's balance, so claims of one payer run one at a time.
    await db.schema
      .createTable("accounts")
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("asset", "text", (column) => column.notNull())
      .addColumn("payer", "text", (column) => column.notNull())
      .addColumn("claimed_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("accounts_key", ["chain_id", "asset", "payer"])
      .execute();

    // The marks of commits on Postgres, see postgres/postgres-transaction.ts; on both databases, the row of write checks.
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

    // Manual changes to an operator's next txNonce.
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

    // Listings are sorted by time, newest first, for one organization or for all.
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

const listings: Migration = {
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
    // Nearly all are settled, so finding those needs no index.
    await db.schema
      .createIndex("settlements_not_settled")
      .on("settlements")
      .columns(["organization_id", "state", "claimed_at", "id"])
      .where(sql.ref("state"), "<>", sql.lit("settled"))
      .execute();
  },
};

const pepper: Migration = {
  name: "0004-pepper",
  summary: "which pepper the API keys are hashed with, so that a wrong one is noticed",

  async up(db) {
    // At most one row.
    await db.schema
      .createTable("pepper")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("hmac", "text", (column) => column.notNull())
      .addColumn("set_at", "bigint", (column) => column.notNull())
      .execute();
  },
};

const resources: Migration = {
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

const payers: Migration = {
  name: "0006-payers",
  summary:
    "an index for listing a payer's settlements of all organizations, in place of the one by organization",

  async up(db) {
    await db.schema.dropIndex("settlements_by_payer").execute();
    // With the payer first it serves one organization just as well, and finds all organizations a payer has paid.
    await db.schema
      .createIndex("settlements_by_payer")
      .on("settlements")
      .columns(["payer", "organization_id", "claimed_at", "id"])
      .execute();
  },
};

const payerCode: Migration = {
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
    // For the recent settlements of payers that share a code, and of an organization's payers with code.
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

/** Integers with up to this many digits are exact in the arithmetic of every database. */
const exactDigits = 15;

const methods: Migration = {
  name: "0008-methods",
  summary: "how each payment was paid, in words that fit every way to pay",

  async up(db) {
    await db.schema.alterTable("settlements").renameColumn("authorization_nonce", "nonce").execute();
    await db.schema.alterTable("settlements").renameColumn("value", "amount").execute();
    await db.schema.alterTable("settlements").renameColumn("valid_after", "valid_first").execute();
    await db.schema.alterTable("settlements").renameColumn("valid_before", "valid_last").execute();
    await db.schema
      .alterTable("settlements")
      .addColumn("method", "text", (column) => column.notNull().defaultTo("exact-eip3009"))
      .execute();
    await db.schema
      .alterTable("settlements")
      .addColumn("nonce_space", "text", (column) => column.notNull().defaultTo(""))
      .execute();
    await db.schema.alterTable("settlements").addColumn("payload", "text").execute();

    // The bounds were EIP-3009's, which are exclusive; they become inclusive.
    await sql`
      UPDATE settlements SET
        nonce_space = asset,
        valid_first = CAST(CAST(valid_first AS numeric) + 1 AS text),
        valid_last = CAST(CAST(valid_last AS numeric) - 1 AS text)
      WHERE length(valid_first) <= ${sql.lit(exactDigits)} AND length(valid_last) <= ${sql.lit(exactDigits)}
    `.execute(db);
    type Row = { id: string; valid_first: string; valid_last: string };
    const left = await sql<Row>`
      SELECT id, valid_first, valid_last FROM settlements WHERE nonce_space = ''
    `.execute(db);
    for (const { id, valid_first, valid_last } of left.rows) {
      const [first, last] = [`${BigInt(valid_first) + 1n}`, `${BigInt(valid_last) - 1n}`];
      await sql`
        UPDATE settlements SET nonce_space = asset, valid_first = ${first}, valid_last = ${last} WHERE id = ${id}
      `.execute(db);
    }
  },
};

const payTo: Migration = {
  name: "0009-pay-to",
  summary: "where payments go that do not go through the facilitator contract",

  async up(db) {
    await db.schema.alterTable("settlements").addColumn("pay_to", "text").execute();
  },
};

const permit2: Migration = {
  name: "0010-permit2",
  summary: "payments whose nonces their token does not keep, and those that allow more than is taken",

  async up(db) {
    await db.schema.alterTable("settlements").addColumn("maximum", "text").execute();
    // Permit2 has its own nonces: an authorization of the same payer and token may have the same number.
    if (isSqlite(db)) await rebuildSettlements(db);
    else {
      await sql`ALTER TABLE settlements DROP CONSTRAINT settlements_authorization`.execute(db);
      await sql`
        ALTER TABLE settlements
        ADD CONSTRAINT settlements_authorization UNIQUE (chain_id, nonce_space, payer, nonce)
      `.execute(db);
    }
  },
};

const gifts: Migration = {
  name: "0011-gifts",
  summary: "gas money that is given to payers who send an approval along",

  async up(db) {
    await db.schema
      .createTable("gifts")
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("asset", "text", (column) => column.notNull())
      .addColumn("payer", "text", (column) => column.notNull())
      .addColumn("sponsor", "text", (column) => column.notNull())
      .addColumn("tx_nonce", "bigint", (column) => column.notNull())
      .addColumn("value", "text", (column) => column.notNull())
      .addColumn("raw", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("max_fee_per_gas", "text", (column) => column.notNull())
      .addColumn("max_priority_fee_per_gas", "text", (column) => column.notNull())
      .addColumn("day", "bigint", (column) => column.notNull())
      .addColumn("given_at", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("gifts_key", ["chain_id", "asset", "payer"])
      .addUniqueConstraint("gifts_tx_nonce", ["chain_id", "sponsor", "tx_nonce"])
      .execute();
    await db.schema.createIndex("gifts_of_day").on("gifts").columns(["chain_id", "sponsor", "day"]).execute();
  },
};

const giftOrganizations: Migration = {
  name: "0012-gift-organizations",
  summary: "for whose payments gas money was given",

  async up(db) {
    await db.schema.alterTable("gifts").addColumn("organization_id", "text").execute();
  },
};

const contracts: Migration = {
  name: "0013-contracts",
  summary:
    "which facilitator contract each payment was claimed for, so that it is settled and proven by that one",

  async up(db) {
    await db.schema.alterTable("settlements").addColumn("contract", "text").execute();
    // Read from their transactions, for settlements still in use: undecided, to be recovered, or not final yet.
    type Row = { chain_id: number; operator: string; tx_nonce: number; asset: string; raw: string };
    const recent = Date.now() - dayMs;
    const { rows } = await sql<Row>`
      SELECT DISTINCT attempts.chain_id, attempts.operator, attempts.tx_nonce, settlements.asset, attempts.raw
      FROM settlements JOIN attempts
        ON attempts.chain_id = settlements.chain_id AND attempts.operator = settlements.operator
        AND attempts.tx_nonce = settlements.tx_nonce
      WHERE attempts.kind = 'settle' AND (
        settlements.state = 'submitted' OR settlements.concluded_at > ${recent}
        OR (settlements.state = 'failed' AND settlements.next_look_at IS NOT NULL)
      )
    `.execute(db);
    for (const { chain_id, operator, tx_nonce, asset, raw } of rows) {
      const contract = contractOf(raw, asset);
      if (contract === undefined) continue;
      await sql`
        UPDATE settlements SET contract = ${contract}
        WHERE chain_id = ${chain_id} AND operator = ${operator} AND tx_nonce = ${tx_nonce}
      `.execute(db);
    }
  },
};

const channels: Migration = {
  name: "0014-channels",
  summary:
    "channels of scheme batch-settlement, the organizations that opened them, and what was moved in them",

  async up(db) {
    await db.schema
      .createTable("channels")
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("network", "text", (column) => column.notNull())
      .addColumn("organization_id", "text", (column) => column.notNull())
      .addColumn("payer", "text", (column) => column.notNull())
      .addColumn("receiver", "text", (column) => column.notNull())
      .addColumn("asset", "text", (column) => column.notNull())
      .addColumn("opened_at", "bigint", (column) => column.notNull())
      .addColumn("withdrawal_amount", "text")
      .addColumn("withdrawal_ends_at", "bigint")
      .addPrimaryKeyConstraint("channels_key", ["chain_id", "id"])
      .execute();
    await db.schema
      .createIndex("channels_of_organization")
      .on("channels")
      .columns(["organization_id", "chain_id", "receiver"])
      .execute();
    // Has no foreign key to settlements: those are archived some day, the moves stay.
    await db.schema
      .createTable("channel_moves")
      .addColumn("settlement_id", "text", (column) => column.notNull())
      .addColumn("chain_id", "bigint", (column) => column.notNull())
      .addColumn("channel_id", "text", (column) => column.notNull())
      .addColumn("kind", "text", (column) => column.notNull())
      .addColumn("amount", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("channel_moves_key", ["settlement_id", "channel_id", "kind"])
      .execute();
    await db.schema
      .createIndex("channel_moves_of_channel")
      .on("channel_moves")
      .columns(["chain_id", "channel_id"])
      .execute();
  },
};

/** Told apart by how parameters are written: `?` in SQLite, `$1` in Postgres. */
function isSqlite(db: Database): boolean {
  return sql`${1}`.compile(db).sql === "?";
}

const formerly = 'unique ("chain_id", "asset", "payer", "nonce")';
const fromNowOn = 'unique ("chain_id", "nonce_space", "payer", "nonce")';

/** Rebuilds the table, since SQLite cannot change a constraint. The rows that refer to it wait in a temporary table. */
async function rebuildSettlements(db: Database): Promise<void> {
  type Definition = { type: string; sql: string | null };
  const { rows } = await sql<Definition>`
    SELECT type, sql FROM sqlite_master WHERE tbl_name = 'settlements' AND sql IS NOT NULL
  `.execute(db);
  const table = rows.find(({ type }) => type === "table")?.sql;
  if (!table?.includes(formerly)) throw new Error("the table of settlements is not as it was made");
  const indexes = rows.flatMap(({ type, sql: definition }) => (type === "index" ? (definition ?? []) : []));

  await sql`CREATE TABLE recoveries_kept AS SELECT * FROM recoveries`.execute(db);
  await sql`DELETE FROM recoveries`.execute(db);
  const named = table.replace(/^CREATE TABLE "?settlements"?/i, 'CREATE TABLE "settlements_new"');
  await sql.raw(named.replace(formerly, fromNowOn)).execute(db);
  await sql`INSERT INTO settlements_new SELECT * FROM settlements`.execute(db);
  await sql`DROP TABLE settlements`.execute(db);
  await sql`ALTER TABLE settlements_new RENAME TO settlements`.execute(db);
  for (const index of indexes) await sql.raw(index).execute(db);
  await sql`INSERT INTO recoveries SELECT * FROM recoveries_kept`.execute(db);
  await sql`DROP TABLE recoveries_kept`.execute(db);
}

export const migrations: readonly Migration[] = [
  initial,
  operations,
  listings,
  pepper,
  resources,
  payers,
  payerCode,
  methods,
  payTo,
  permit2,
  gifts,
  giftOrganizations,
  contracts,
  channels,
];
