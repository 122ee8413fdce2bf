import type { Kysely } from "kysely";
import { inTransaction } from "../../ledger/database/transactions.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import type { OrganizationTables } from "./organization-rows.ts";
import type { PepperState } from "./organizations.ts";

/** The error of a wrong pepper, and what to do about it. */
export const wrongPepper = {
  name: "API_KEY_PEPPER",
  problem: "is not the one that the API keys were made with, so every key would be answered 401",
  advice: `Set the one that the keys were made with. If it is lost, or changed on purpose: ${self} key accept-pepper, and issue new keys.`,
} as const;

/** The row with the HMAC of a fixed text under the pepper of the keys. */
const only = 1;
const text = "which pepper the API keys are hashed with";

/** Remembers in the database which pepper the API keys are hashed with, without the pepper itself. */
export type PepperRecord = {
  state(): Promise<PepperState>;
  /**
   * To be called in the transaction that stores a key, before it does: records the pepper with the first key.
   *
   * @throws KitError when the other keys have another pepper.
   */
  require(transaction: Kysely<OrganizationTables>): Promise<void>;
  /** Records the pepper after a key was recognized, which shows that it is right. Never throws. */
  recognized(): Promise<void>;
  /** Makes this the pepper; gives the number of keys that stop working. */
  accept(): Promise<number>;
};

export function createPepperRecord(
  db: Kysely<OrganizationTables>,
  { hmacOf, now }: { hmacOf: (text: string) => Buffer; now: () => number },
): PepperRecord {
  const hmac = hmacOf(text).toString("hex");
  let isRecorded = false;

  async function stateIn(tables: Kysely<OrganizationTables>): Promise<PepperState> {
    const row = await tables.selectFrom("pepper").select("hmac").where("id", "=", only).executeTakeFirst();
    if (row === undefined) return "unknown";
    isRecorded = row.hmac === hmac;
    return isRecorded ? "right" : "wrong";
  }

  async function record(tables: Kysely<OrganizationTables>): Promise<void> {
    await tables
      .insertInto("pepper")
      .values({ id: only, hmac, set_at: now() })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .execute();
  }

  return {
    state: () => stateIn(db),

    async require(transaction) {
      if ((await stateIn(transaction)) === "unknown") {
        // Keys from before this record existed may have any pepper.
        const older = await transaction.selectFrom("api_keys").select("id").limit(1).executeTakeFirst();
        if (older !== undefined) return;
        await record(transaction);
        // Another process may have been first, with another pepper.
        await stateIn(transaction);
      }
      if (!isRecorded)
        throw new KitError(`${wrongPepper.name} ${wrongPepper.problem}`, { hints: [wrongPepper.advice] });
    },

    async recognized() {
      if (isRecorded) return;
      isRecorded = true;
      await record(db).catch(() => {
        isRecorded = false;
      });
    },

    accept: () =>
      inTransaction(db, async (transaction) => {
        if ((await stateIn(transaction)) === "right") return 0;
        const set_at = now();
        await transaction
          .insertInto("pepper")
          .values({ id: only, hmac, set_at })
          .onConflict((conflict) => conflict.column("id").doUpdateSet({ hmac, set_at }))
          .execute();
        const { count } = await transaction
          .selectFrom("api_keys")
          .select(({ fn }) => fn.countAll<number | bigint>().as("count"))
          .where("revoked_at", "is", null)
          .where(({ eb, or }) => or([eb("expires_at", "is", null), eb("expires_at", ">", set_at)]))
          .executeTakeFirstOrThrow();
        return Number(count);
      }),
  };
}
