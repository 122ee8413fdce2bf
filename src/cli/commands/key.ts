import { InvalidValue, readDuration, readMoment, readOneOf } from "../../config/values.ts";
import { clockOf } from "../../ledger/database/database.ts";
import { createOrganizations } from "../../service/organizations/create-organizations.ts";
import { type KeyRecord, type Scope, scopes } from "../../service/organizations/organizations.ts";
import { self } from "../../util/self-command.ts";
import { renderTable } from "../../util/text.ts";
import { actorOption, defineCommand, option, textOption } from "../kit/command.ts";
import { actorOr, usesDatabase, usesKeys, withDatabase, withOrganizations } from "../kit/with-database.ts";

export const organizationOption = textOption("ID", "the organization's id", {
  example: "org_0123456789abcdef",
  required: true,
});

const expiryOption = option(
  "WHEN",
  "when it stops working: after days (90d) or hours (12h), or at a date (default: never)",
  {
    read: (text) => (/^\d+[a-z]$/.test(text) ? Date.now() + readDuration(text) : readMoment(text)),
    example: "90d",
  },
);

const keyOption = option("ID", "the key's id: the middle part of x4k_<id>_<secret>", {
  read: readKeyId,
  example: "0123456789abcdef",
  required: true,
});

function readKeyId(text: string): string {
  // The whole key contains the secret, which must not get into a shell's history.
  if (/^x4k_/.test(text)) {
    throw new InvalidValue("is a whole key; its id is the part in the middle, and no secret");
  }
  return text;
}

export const keyCreate = defineCommand({
  ...usesKeys,
  options: {
    org: organizationOption,
    scopes: option("SCOPES", "what it may be used for, separated by commas", {
      example: scopes.join(","),
      read: (text): readonly Scope[] => text.split(",").map((word) => readOneOf(scopes)(word.trim())),
      default: scopes.join(","),
    }),
    expires: expiryOption,
    actor: actorOption,
  },

  run: ({ org, scopes, expires: expiresAt, actor }, _terminal, { databaseUrl, pepper }) =>
    withDatabase(databaseUrl, async (db) => {
      const organizations = createOrganizations({ db, now: clockOf(db).now, pepper, actor: actorOr(actor) });
      const { key, keyId } = await organizations.createKey(org, { scopes, expiresAt });
      const expiry = isoTime(expiresAt ?? null);
      const title = `Key ${keyId} of ${org}, for ${scopes.join(" and ")}; expires ${expiry ?? "never"}:`;
      return {
        json: { keyId, key, organizationId: org, scopes, expiresAt: expiry },
        text: describeIssued(title, key),
      };
    }),
});

export const keyList = defineCommand({
  ...usesDatabase,
  options: { org: organizationOption },

  run: ({ org }, _terminal, { databaseUrl }) =>
    withOrganizations({ databaseUrl }, async (organizations) => {
      const keys = await organizations.listKeys(org);
      return { json: keys.map(keyAsJson), text: describeKeys(keys) };
    }),
});

export const keyRotate = defineCommand({
  ...usesKeys,
  options: {
    id: keyOption,
    grace: option("SPAN", "for how long the old key still works: 30m, 12h, 7d, or 0m", {
      read: readDuration,
      default: "24h",
    }),
    expires: expiryOption,
    actor: actorOption,
  },

  run: ({ id, grace: graceMs, expires: expiresAt, actor }, _terminal, { databaseUrl, pepper }) =>
    withDatabase(databaseUrl, async (db) => {
      const organizations = createOrganizations({ db, now: clockOf(db).now, pepper, actor: actorOr(actor) });
      const { key, keyId, oldExpiresAt } = await organizations.rotateKey(id, { graceMs, expiresAt });
      const oldExpiry = isoTime(oldExpiresAt);
      const expiry = isoTime(expiresAt ?? null);
      return {
        json: { keyId, key, expiresAt: expiry, replaces: { keyId: id, expiresAt: oldExpiry } },
        text: describeIssued(`Key ${keyId} takes the place of ${id}, which works until ${oldExpiry}:`, key),
      };
    }),
});

export const keyRevoke = defineCommand({
  // Needs no pepper: revoking a leaked key must not wait for the person who knows where the pepper is kept.
  ...usesDatabase,
  options: { id: keyOption, actor: actorOption },

  run: ({ id, actor }, _terminal, { databaseUrl }) =>
    withOrganizations({ databaseUrl, actor }, async (organizations) => {
      await organizations.revokeKey(id);
      return {
        json: { keyId: id, state: "revoked" },
        text: `Key ${id} is revoked. Every instance refuses it within a second.`,
      };
    }),
});

export const keyAcceptPepper = defineCommand({
  ...usesKeys,
  options: {},

  run: (_values, _terminal, { databaseUrl, pepper }) =>
    withDatabase(databaseUrl, async (db) => {
      const ended = await createOrganizations({ db, now: clockOf(db).now, pepper }).acceptPepper();
      const keys =
        ended === 1
          ? "1 key was made with another one, and works"
          : `${ended} keys were made with another one, and work`;
      return {
        json: { endedKeys: ended },
        text:
          ended === 0
            ? "API_KEY_PEPPER is that of the API keys: no key stops working."
            : `From now on API_KEY_PEPPER is the pepper. ${keys} no more: issue new ones, ${self} key create.`,
      };
    }),
});

const isoTime = (time: number | null) => (time === null ? null : new Date(time).toISOString());

export function keyAsJson({ createdAt, expiresAt, revokedAt, ...key }: KeyRecord) {
  return {
    ...key,
    createdAt: isoTime(createdAt),
    expiresAt: isoTime(expiresAt),
    revokedAt: isoTime(revokedAt),
  };
}

export function describeKeys(keys: readonly KeyRecord[]): string {
  if (keys.length === 0) return `None yet: ${self} key create --org ID`;
  const rows = keys.map((key) => [
    key.keyId,
    key.state,
    key.scopes.join(", "),
    isoTime(key.createdAt) ?? "",
    isoTime(key.expiresAt) ?? "never",
    key.replacedBy ?? "",
  ]);
  return renderTable(["id", "state", "scopes", "created", "expires", "replaced by"], rows);
}

/** Describes a new key for a person. */
function describeIssued(title: string, key: string): string {
  return `${title}\n\n  ${key}\n\nIt is shown this once. Keep it where secrets are kept.`;
}
