import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Kysely } from "kysely";
import type { Database } from "../database/database.ts";
import { inTransaction } from "../database/transaction.ts";
import { KitError } from "../errors/base.ts";
import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { createKeyHmac, drawApiKey, parseApiKey } from "./api-key.ts";
import { createIdentityCache } from "./identity-cache.ts";
import type { Caller, Organization, Organizations, Scope } from "./organizations.ts";
import type { OrganizationTables } from "./tables.ts";

export type OrganizationsOptions = {
  /** An open and migrated database. */
  db: Database;
  /** Mixed into the HMAC of every key, and kept apart from the database; without it no key can be checked. */
  pepper: string;
  /** Unix milliseconds. */
  now: () => number;
  /** How long an instance may go on with what it knows of a key, in milliseconds; 1 s by default. */
  cacheMs?: number;
};

/** A stored key with what it stands for. */
type Identity = { caller: Caller; hmac: Buffer; expiresAt: number | null; revokedAt: number | null };

/** Keys remembered at a time, unknown ones included. */
const cachedKeys = 10_000;

/**
 * Organizations in a database. Any number of instances may share one: a change made by one of them takes effect at
 * once there, and within `cacheMs` on the others.
 */
export function createOrganizations(options: OrganizationsOptions): Organizations {
  const { pepper, now, cacheMs = 1_000 } = options;
  const db = options.db.$extendTables<OrganizationTables>();
  const hmacOf = createKeyHmac(pepper);
  const identities = createIdentityCache({
    load: loadIdentity,
    now,
    maxAgeMs: cacheMs,
    maxEntries: cachedKeys,
  });
  /** Compared with where there is no key to compare with; no key has it, as nobody can choose an HMAC. */
  const nobodysHmac = randomBytes(32);

  async function loadIdentity(keyId: string): Promise<Identity | null> {
    const rows = await db
      .selectFrom("api_keys")
      .innerJoin("organizations", "organizations.id", "api_keys.organization_id")
      .leftJoin("recipients", "recipients.organization_id", "organizations.id")
      .select([
        "api_keys.hmac",
        "api_keys.scopes",
        "api_keys.expires_at",
        "api_keys.revoked_at",
        "organizations.id as organization_id",
        "organizations.name",
        "recipients.network",
        "recipients.recipient",
      ])
      .where("api_keys.id", "=", keyId)
      .execute();
    const [key] = rows;
    if (key === undefined) return null;
    return {
      caller: {
        organization: toOrganization(key.organization_id, key.name, rows),
        keyId,
        scopes: key.scopes.split(" ").filter(isScope),
      },
      hmac: Buffer.from(key.hmac, "hex"),
      expiresAt: key.expires_at,
      revokedAt: key.revoked_at,
    };
  }

  return {
    async create({ id = `org_${randomBytes(8).toString("hex")}`, name }) {
      if (!/^[0-9A-Za-z_-]{1,64}$/.test(id)) {
        throw new KitError(
          `The organization id ${JSON.stringify(id)} must be 1 to 64 letters, digits, _ or -`,
        );
      }
      const created = await db
        .insertInto("organizations")
        .values({ id, name, created_at: now() })
        .onConflict((conflict) => conflict.column("id").doNothing())
        .returning("id")
        .executeTakeFirst();
      if (created === undefined) throw new KitError(`There is an organization ${id} already`);
      return { id, name, recipients: {} };
    },

    async find(id) {
      const rows = await db
        .selectFrom("organizations")
        .leftJoin("recipients", "recipients.organization_id", "organizations.id")
        .select(["organizations.name", "recipients.network", "recipients.recipient"])
        .where("organizations.id", "=", id)
        .execute();
      const [first] = rows;
      return first === undefined ? null : toOrganization(id, first.name, rows);
    },

    async setRecipient(organizationId, network, recipient) {
      if (!/^0x[0-9a-fA-F]{40}$/.test(recipient) || /^0x0{40}$/.test(recipient)) {
        throw new KitError(`The recipient ${JSON.stringify(recipient)} is not an address that can be paid`);
      }
      await inTransaction(db, async (transaction) => {
        await requireOrganization(transaction, organizationId);
        await transaction
          .insertInto("recipients")
          .values({ organization_id: organizationId, network, recipient })
          .onConflict((conflict) =>
            conflict.columns(["organization_id", "network"]).doUpdateSet({ recipient }),
          )
          .execute();
      });
      identities.clear();
    },

    async createKey(organizationId, { scopes, expiresAt, key: imported }) {
      const drawn = imported === undefined ? drawApiKey() : parseApiKey(imported);
      if (drawn === null) {
        throw new KitError(
          "The key must be x4k_<id>_<secret>, of letters and digits, the secret at least 32",
        );
      }
      if (scopes.length === 0) throw new KitError("A key needs at least one scope");
      const { key, keyId } = drawn;
      await inTransaction(db, async (transaction) => {
        await requireOrganization(transaction, organizationId);
        const created = await transaction
          .insertInto("api_keys")
          .values({
            id: keyId,
            organization_id: organizationId,
            hmac: hmacOf(key).toString("hex"),
            scopes: [...new Set(scopes)].join(" "),
            created_at: now(),
            expires_at: expiresAt ?? null,
            revoked_at: null,
          })
          .onConflict((conflict) => conflict.column("id").doNothing())
          .returning("id")
          .executeTakeFirst();
        if (created === undefined) throw new KitError(`There is a key with the id ${keyId} already`);
      });
      identities.clear();
      return { key, keyId };
    },

    async revokeKey(keyId) {
      const revoked = await db
        .updateTable("api_keys")
        .set((row) => ({ revoked_at: row.fn.coalesce("revoked_at", row.val(now())) }))
        .where("id", "=", keyId)
        .returning("id")
        .executeTakeFirst();
      if (revoked === undefined) throw new KitError(`There is no key with the id ${JSON.stringify(keyId)}`);
      identities.clear();
    },

    async authenticate(key) {
      // Every key takes the same way, well-formed or not: one look-up, one HMAC, one comparison.
      const identity = await identities.get(parseApiKey(key)?.keyId ?? "");
      const right = timingSafeEqual(hmacOf(key.slice(0, 256)), identity?.hmac ?? nobodysHmac);
      if (!right || identity === null) return null;
      if (identity.revokedAt !== null) return null;
      if (identity.expiresAt !== null && identity.expiresAt <= now()) return null;
      return identity.caller;
    },
  };
}

async function requireOrganization(db: Kysely<OrganizationTables>, id: string): Promise<void> {
  const known = await db.selectFrom("organizations").select("id").where("id", "=", id).executeTakeFirst();
  if (known === undefined) throw new KitError(`There is no organization ${JSON.stringify(id)}`);
}

function toOrganization(
  id: string,
  name: string,
  rows: readonly { network: NetworkName | null; recipient: Address | null }[],
): Organization {
  return {
    id,
    name,
    recipients: Object.fromEntries(
      rows.flatMap(({ network, recipient }) =>
        network !== null && recipient !== null ? [[network, recipient]] : [],
      ),
    ),
  };
}

function isScope(text: string): text is Scope {
  return text === "verify" || text === "settle";
}
