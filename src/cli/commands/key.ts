import { InvalidValue, readDuration, readMoment, readOneOf } from "../../config/values.ts";
import { createOrganizations } from "../../organizations/create-organizations.ts";
import { type KeyRecord, type Scope, scopes } from "../../organizations/organizations.ts";
import { self } from "../../util/self-command.ts";
import { renderTable } from "../../util/table.ts";
import { actorOption, defineCommand, flag, type Option, textOption, valueOption } from "../kit/command.ts";
import { actorOr, usesDatabase, usesKeys, withDatabase, withOrganizations } from "../kit/database.ts";

const json = flag("print JSON");
const now = Date.now;

/** Which organization a command is about. */
export const organizationOption = {
  ...textOption("the organization's id", "ID", "org_0123456789abcdef"),
  required: true,
} as const satisfies Option;

/** When a new key stops working. */
const expiryOption = valueOption(
  "when it stops working: after so many days (90d) or hours (12h), or at a date (default: never)",
  "WHEN",
  "90d",
  (text) => (/^\d+[a-z]$/.test(text) ? Date.now() + readDuration(text) : readMoment(text)),
);

/** Which key a command is about. */
const keyOption = {
  ...valueOption("the key's id: the middle part of x4k_<id>_<secret>", "ID", "0123456789abcdef", readKeyId),
  required: true,
} as const satisfies Option;

function readKeyId(text: string): string {
  // A secret is about to stand in a shell's history.
  if (/^x4k_/.test(text)) {
    throw new InvalidValue("is a whole key; its id is the part in the middle, and no secret");
  }
  return text;
}

export const keyCreate = defineCommand({
  ...usesKeys,
  options: {
    org: organizationOption,
    scopes: {
      describe: "what it may be used for, separated by commas",
      placeholder: "SCOPES",
      example: scopes.join(","),
      read: (text): readonly Scope[] => text.split(",").map((word) => readOneOf(scopes)(word.trim())),
      default: scopes.join(","),
    },
    expires: expiryOption,
    actor: actorOption,
    json,
  },

  run: ({ org, scopes, expires: expiresAt, actor, json }, { print }, { databaseUrl, pepper }) =>
    withDatabase(databaseUrl, async (db) => {
      const organizations = createOrganizations({ db, now, pepper, actor: actorOr(actor) });
      const { key, keyId } = await organizations.createKey(org, { scopes, expiresAt });
      const expiry = isoTime(expiresAt ?? null);
      if (json) {
        print(JSON.stringify({ keyId, key, organizationId: org, scopes, expiresAt: expiry }));
      } else {
        print(`Key ${keyId} of ${org}, for ${scopes.join(" and ")}; expires ${expiry ?? "never"}:`);
        print(describeIssued(key));
      }
      return 0;
    }),
});

export const keyList = defineCommand({
  ...usesDatabase,
  options: { org: organizationOption, json },

  run: ({ org, json }, { print }, { databaseUrl }) =>
    withOrganizations({ databaseUrl }, async (organizations) => {
      const keys = await organizations.listKeys(org);
      print(json ? JSON.stringify(keys.map(keyAsJson)) : describeKeys(keys));
      return 0;
    }),
});

export const keyRotate = defineCommand({
  ...usesKeys,
  options: {
    id: keyOption,
    grace: {
      ...valueOption(
        "for how long the old key still works: 30m, 12h, 7d, or 0m",
        "SPAN",
        "24h",
        readDuration,
      ),
      default: "24h",
    },
    expires: expiryOption,
    actor: actorOption,
    json,
  },

  run: ({ id, grace: graceMs, expires: expiresAt, actor, json }, { print }, { databaseUrl, pepper }) =>
    withDatabase(databaseUrl, async (db) => {
      const organizations = createOrganizations({ db, now, pepper, actor: actorOr(actor) });
      const { key, keyId, oldExpiresAt } = await organizations.rotateKey(id, { graceMs, expiresAt });
      const oldExpiry = isoTime(oldExpiresAt);
      const expiry = isoTime(expiresAt ?? null);
      if (json) {
        print(
          JSON.stringify({ keyId, key, expiresAt: expiry, replaces: { keyId: id, expiresAt: oldExpiry } }),
        );
      } else {
        print(`Key ${keyId} takes the place of ${id}, which works until ${oldExpiry}:`);
        print(describeIssued(key));
      }
      return 0;
    }),
});

export const keyRevoke = defineCommand({
  // Without the pepper: to end a key that has leaked must not wait for the person who knows where the pepper is kept.
  ...usesDatabase,
  options: { id: keyOption, actor: actorOption, json },

  run: ({ id, actor, json }, { print }, { databaseUrl }) =>
    withOrganizations({ databaseUrl, actor }, async (organizations) => {
      await organizations.revokeKey(id);
      print(
        json
          ? JSON.stringify({ keyId: id, state: "revoked" })
          : `Key ${id} is revoked. Every instance refuses it within a second.`,
      );
      return 0;
    }),
});

export const keyAcceptPepper = defineCommand({
  ...usesKeys,
  options: { json },

  run: ({ json }, { print }, { databaseUrl, pepper }) =>
    withDatabase(databaseUrl, async (db) => {
      const ended = await createOrganizations({ db, now, pepper }).acceptPepper();
      if (json) print(JSON.stringify({ endedKeys: ended }));
      else if (ended === 0) print("API_KEY_PEPPER is that of the API keys: no key stops working.");
      else {
        const keys =
          ended === 1
            ? "1 key was made with another one, and works"
            : `${ended} keys were made with another one, and work`;
        print(
          `From now on API_KEY_PEPPER is the pepper. ${keys} no more: issue new ones, ${self} key create.`,
        );
      }
      return 0;
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

/** Keys as a table. */
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

/** What a person does with a new key. */
function describeIssued(key: string): string {
  return `\n  ${key}\n\nIt is shown this once. Keep it where secrets are kept.`;
}
