import { readDuration } from "../../config/values.ts";
import { createOrganizations } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { describeIssued, expiryOption, keyOption } from "./key.ts";
import { actorOption, actorOr, databaseOption, pepperOption, withDatabase } from "./operator-database.ts";

export const keyRotate = defineCommand({
  usesEnvFile: true,
  options: {
    id: keyOption,
    grace: {
      describe: "for how long the old key still works: 30m, 12h, 7d, or 0m (default 24h)",
      placeholder: "SPAN",
      example: "24h",
      read: readDuration,
      fallback: readDuration("24h"),
    },
    expires: expiryOption,
    actor: actorOption,
    json: flag("print JSON"),
    database: databaseOption,
    pepper: pepperOption,
  },

  run: ({ id, grace: graceMs, expires: expiresAt, actor, json, database, pepper }, { print }) =>
    withDatabase(database, async (db) => {
      const now = Date.now;
      const organizations = createOrganizations({ db, now, pepper, actor: actorOr(actor) });
      const { key, keyId, oldExpiresAt } = await organizations.rotateKey(id, { graceMs, expiresAt });
      const oldExpiry = new Date(oldExpiresAt).toISOString();
      const expiry = expiresAt === undefined ? null : new Date(expiresAt).toISOString();
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
