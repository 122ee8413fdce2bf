import { createHmac, createSecretKey, randomBytes } from "node:crypto";
import type { Kysely, Transaction } from "kysely";
import { inTransaction } from "../../ledger/database/transactions.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { type Author, lockOrganization, noKey, recordChange } from "./administration.ts";
import { keyStateOf, type OrganizationTables, toScopes } from "./organization-rows.ts";
import {
  type IssuedKey,
  type KeyIssuing,
  scopes as knownScopes,
  type PepperState,
  type Scope,
} from "./organizations.ts";

/** Makes {@link KeyIssuing}. */
export function createKeyIssuing(
  db: Kysely<OrganizationTables>,
  parts: {
    author: Author;
    hmacOf: (key: string) => Buffer;
    pepperRecord: ReturnType<typeof createPepperRecord>;
  },
): KeyIssuing {
  const { author, hmacOf, pepperRecord } = parts;
  const { now } = author;

  async function store(
    transaction: Transaction<OrganizationTables>,
    { key, keyId }: IssuedKey,
    options: { organizationId: string; scopes: readonly Scope[]; expiresAt: number | undefined },
  ): Promise<void> {
    const { organizationId, scopes, expiresAt } = options;
    await pepperRecord.require(transaction);
    const created = await transaction
      .insertInto("api_keys")
      .values({
        id: keyId,
        organization_id: organizationId,
        hmac: hmacOf(key).toString("hex"),
        scopes: scopes.join(" "),
        created_at: now(),
        expires_at: expiresAt ?? null,
        revoked_at: null,
      })
      .onConflict((conflict) => conflict.column("id").doNothing())
      .returning("id")
      .executeTakeFirst();
    if (created === undefined) throw new KitError(`There is a key with the id ${keyId} already`);
  }

  function requireFuture(expiresAt: number | undefined): void {
    if (expiresAt !== undefined && !(expiresAt > now())) {
      throw new KitError("A key must not have expired when it is issued");
    }
  }

  return {
    async createKey(organizationId, { scopes: asked, expiresAt, key: imported }) {
      const drawn = imported === undefined ? drawApiKey() : parseApiKey(imported);
      if (drawn === null) {
        throw new KitError(
          "The key must be x4k_<id>_<secret>, of letters and digits, the secret at least 32",
        );
      }
      const scopes = knownScopes.filter((scope) => asked.includes(scope));
      if (scopes.length === 0) throw new KitError("A key needs at least one scope");
      requireFuture(expiresAt);
      await inTransaction(db, async (transaction) => {
        await lockOrganization(transaction, organizationId);
        await store(transaction, drawn, { organizationId, scopes, expiresAt });
        const change = { keyId: drawn.keyId, scopes, expiresAt: expiresAt ?? null };
        await recordChange(transaction, author, organizationId, "key created", change);
      });
      return drawn;
    },

    async rotateKey(keyId, { graceMs, expiresAt }) {
      requireFuture(expiresAt);
      const drawn = drawApiKey();
      const oldExpiresAt = await inTransaction(db, async (transaction) => {
        // Locked by an update that changes nothing: of two concurrent rotations, the second sees the first.
        const old = await transaction
          .updateTable("api_keys")
          .set((row) => ({ replaced_by: row.ref("replaced_by") }))
          .where("id", "=", keyId)
          .returning(["organization_id", "scopes", "expires_at", "revoked_at", "replaced_by"])
          .executeTakeFirst();
        if (old === undefined) throw noKey(keyId);
        const state = keyStateOf(old, now());
        if (state !== "active") {
          throw new KitError(`The key ${keyId} is ${state}, and cannot be rotated`, {
            hints: [
              old.replaced_by === null
                ? `Issue another one instead: ${self} key create`
                : `It was replaced by ${old.replaced_by}.`,
            ],
          });
        }
        const oldExpiresAt = Math.min(now() + graceMs, old.expires_at ?? Number.POSITIVE_INFINITY);
        const organizationId = old.organization_id;
        await store(transaction, drawn, { organizationId, scopes: toScopes(old.scopes), expiresAt });
        await transaction
          .updateTable("api_keys")
          .set({ expires_at: oldExpiresAt, replaced_by: drawn.keyId })
          .where("id", "=", keyId)
          .execute();
        await recordChange(transaction, author, organizationId, "key rotated", {
          keyId,
          expiresAt: oldExpiresAt,
          replacedBy: drawn.keyId,
          replacementExpiresAt: expiresAt ?? null,
        });
        return oldExpiresAt;
      });
      return { ...drawn, oldExpiresAt };
    },
  };
}

// Neither part may contain the separator, so that a key splits in only one way.
const format = /^x4k_([0-9A-Za-z]{1,32})_[0-9A-Za-z]{32,128}$/;

/**
 * Draws a key `x4k_<id>_<secret>`: an id of 8 random bytes and a secret of 32, both in lowercase hex. Imported keys may
 * use any letters and digits.
 */
function drawApiKey(): IssuedKey {
  const keyId = randomBytes(8).toString("hex");
  return { keyId, key: `x4k_${keyId}_${randomBytes(32).toString("hex")}` };
}

/** Reads a key; null if it is malformed. */
export function parseApiKey(key: string): IssuedKey | null {
  const keyId = format.exec(key)?.[1];
  return keyId === undefined ? null : { key, keyId };
}

/**
 * Makes the function that hashes keys for storage: HMAC-SHA-256 with the pepper. It covers the id too, so that write
 * access to the database is not enough to give one key's HMAC to another key.
 */
export function createKeyHmac(pepper: string): (key: string) => Buffer {
  if (pepper === "") throw new KitError("The pepper of the API keys must not be empty");
  const secret = createSecretKey(pepper, "utf8");
  return (key) => createHmac("sha256", secret).update(key).digest();
}

/** The error for a wrong pepper, with advice. */
export const wrongPepper = {
  name: "API_KEY_PEPPER",
  problem: "is not the one that the API keys were made with, so every key would be answered 401",
  advice: `Set the one that the keys were made with. If it is lost, or changed on purpose: ${self} key accept-pepper, and issue new keys.`,
} as const;

/** The id of the row with the HMAC of a fixed text under the pepper of the keys. */
const only = 1;
const text = "which pepper the API keys are hashed with";

/** Records in the database which pepper the API keys are hashed with, without the pepper itself. */
export function createPepperRecord(
  db: Kysely<OrganizationTables>,
  { hmacOf, now }: { hmacOf: (text: string) => Buffer; now: () => number },
) {
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

    /**
     * Call this in the transaction that stores a key, before storing it: records the pepper with the first key.
     *
     * @throws KitError when the other keys have another pepper.
     */
    async require(transaction: Kysely<OrganizationTables>): Promise<void> {
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

    /** Records the pepper after a key was recognized, which proves that it is right. Never throws. */
    async recognized(): Promise<void> {
      if (isRecorded) return;
      isRecorded = true;
      await record(db).catch(() => {
        isRecorded = false;
      });
    },

    /** Makes this the pepper; returns the number of keys that stop working. */
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
