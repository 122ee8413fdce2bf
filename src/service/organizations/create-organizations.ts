import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Database } from "../../ledger/database/database.ts";
import { createBoundedMap } from "../../util/cache.ts";
import { KitError } from "../../util/errors.ts";
import { createAdministration, isLine } from "./administration.ts";
import { createKeyHmac, createKeyIssuing, createPepperRecord, parseApiKey } from "./key-issuing.ts";
import {
  type KeyTimes,
  keyStateOf,
  networkColumns,
  type OrganizationTables,
  toOrganization,
  toScopes,
} from "./organization-rows.ts";
import type {
  Caller,
  OrganizationAdministration,
  Organizations,
  ReservedAddresses,
} from "./organizations.ts";

export type AdministrationOptions = {
  db: Database;
  /** Unix milliseconds. */
  now: () => number;
  /** Who makes the changes, for the audit trail: a person or a program. "api" by default. */
  actor?: string;
  /** Addresses at which no organization can be paid, in addition to the USDC of each network. */
  reserved?: ReservedAddresses;
};

export type OrganizationsOptions = AdministrationOptions & {
  /** Mixed into the HMAC of every key, and stored outside the database; without it no key can be checked. */
  pepper: string;
  /** How long an instance may use a cached key, in milliseconds; 1 s by default. */
  cacheMs?: number;
};

/** A stored key and its caller. `proven` is the SHA-256 of the key once it was right, for as long as it is cached. */
type Identity = { caller: Caller; hmac: Buffer; times: KeyTimes; proven?: Buffer };

/** The number of keys cached, including unknown ones. */
const cachedKeys = 10_000;

/**
 * Makes the organizations of a database. Any number of instances may share one: a change takes effect at once on the
 * instance that makes it, and within `cacheMs` on the others.
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
  /** Compared with if a key is unknown; no key has it, since an HMAC cannot be chosen. */
  const hmacOfNoKey = randomBytes(32);
  const administration = createOrganizationAdministration(options);
  const pepperRecord = createPepperRecord(db, { hmacOf, now });
  const issuing = createKeyIssuing(db, { author: authorOf(options), hmacOf, pepperRecord });

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
        "api_keys.replaced_by",
        "organizations.id as organization_id",
        "organizations.name",
        ...networkColumns,
      ])
      .where("api_keys.id", "=", keyId)
      .execute();
    const [key] = rows;
    if (key === undefined) return null;
    const { expires_at, revoked_at, replaced_by } = key;
    return {
      caller: {
        organization: toOrganization(key.organization_id, key.name, rows),
        keyId,
        scopes: toScopes(key.scopes),
      },
      hmac: Buffer.from(key.hmac, "hex"),
      times: { expires_at, revoked_at, replaced_by },
    };
  }

  /**
   * Returns true if a key is that of an identity. A key that was right a moment ago is recognized by its plain hash: an
   * HMAC per request takes a twentieth of the CPU of a verify, including the garbage it leaves. Every wrong key costs
   * the same, even if malformed: one look-up, one hash, one HMAC, two comparisons.
   */
  function isRight(key: string, identity: Identity | null): boolean {
    const digest = hash("sha256", key, "buffer");
    if (timingSafeEqual(digest, identity?.proven ?? hmacOfNoKey)) return true;
    const right = timingSafeEqual(hmacOf(key), identity?.hmac ?? hmacOfNoKey);
    if (right && identity !== null) identity.proven = digest;
    return right;
  }

  /** Makes a change visible on this instance at once. */
  function forgetting<Args extends unknown[], T>(change: (...args: Args) => Promise<T>) {
    return async (...args: Args): Promise<T> => {
      try {
        return await change(...args);
      } finally {
        identities.clear();
      }
    };
  }

  return {
    ...administration,
    setRecipient: forgetting(administration.setRecipient),
    setLimits: forgetting(administration.setLimits),
    revokeKey: forgetting(administration.revokeKey),
    createKey: forgetting(issuing.createKey),
    rotateKey: forgetting(issuing.rotateKey),

    async authenticate(key) {
      const identity = await identities.get(parseApiKey(key)?.keyId ?? "");
      if (!isRight(key.slice(0, 256), identity) || identity === null) return null;
      const state = keyStateOf(identity.times, now());
      if (state !== "active" && state !== "replaced") return null;
      void pepperRecord.recognized();
      return identity.caller;
    },

    checkPepper: pepperRecord.state,
    acceptPepper: pepperRecord.accept,
  };
}

/** Makes the administration of organizations, which does not need the pepper. */
export function createOrganizationAdministration(options: AdministrationOptions): OrganizationAdministration {
  const { db, reserved = {} } = options;
  return createAdministration(db.$extendTables<OrganizationTables>(), authorOf(options), reserved);
}

function authorOf({ actor = "api", now }: AdministrationOptions) {
  if (!isLine(actor)) throw new KitError("The actor must be 1 to 100 characters on one line");
  return { actor, now };
}

/** Caches values by name for a short time. */
export type IdentityCache<T> = {
  /** Returns the cached value of a name, or loads it; concurrent calls load once. */
  get(name: string): Promise<T>;
  /** Drops everything, including loads in progress: they may have begun before the change that requires this. */
  clear(): void;
};

/**
 * Makes a cache over `load`. Its values are never older than `maxAgeMs`, counted from before the load began. Names come
 * from outside, so at most `maxEntries` are kept; the oldest are dropped first.
 */
export function createIdentityCache<T>(options: {
  load: (name: string) => Promise<T>;
  now: () => number;
  maxAgeMs: number;
  maxEntries: number;
}): IdentityCache<T> {
  const { load, now, maxAgeMs, maxEntries } = options;
  const entries = createBoundedMap<string, { loadedAt: number; value: Promise<T> }>(maxEntries);

  return {
    get(name) {
      const time = now();
      const known = entries.get(name);
      // Without the first check, setting the clock back would keep an entry alive for that long.
      if (known !== undefined && time >= known.loadedAt && time - known.loadedAt < maxAgeMs)
        return known.value;

      const entry = { loadedAt: time, value: load(name) };
      entries.renew(name, entry);
      entry.value.catch(() => {
        if (entries.get(name) === entry) entries.delete(name);
      });
      return entry.value;
    },
    clear: () => entries.clear(),
  };
}
