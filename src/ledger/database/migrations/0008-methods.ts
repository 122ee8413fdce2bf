import { sql } from "kysely";
import type { Migration } from "./migration.ts";

/** Whole numbers of so many digits are exact in the arithmetic of every database. */
const exactDigits = 15;

export const methods: Migration = {
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

    // The bounds were those of EIP-3009, which are outside of the window that they bound.
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
