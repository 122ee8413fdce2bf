import { createOrganizations } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { describeIssued, expiryOption, scopesOption } from "./key.ts";
import { actorOption, actorOr, databaseOption, pepperOption, withDatabase } from "./operator-database.ts";
import { organizationOption } from "./org.ts";

export const keyCreate = defineCommand({
  usesEnvFile: true,
  options: {
    org: organizationOption,
    scopes: scopesOption,
    expires: expiryOption,
    actor: actorOption,
    json: flag("print JSON"),
    database: databaseOption,
    pepper: pepperOption,
  },

  run: ({ org, scopes, expires: expiresAt, actor, json, database, pepper }, { print }) =>
    withDatabase(database, async (db) => {
      const now = Date.now;
      const organizations = createOrganizations({ db, now, pepper, actor: actorOr(actor) });
      const { key, keyId } = await organizations.createKey(org, { scopes, expiresAt });
      const expiry = expiresAt === undefined ? null : new Date(expiresAt).toISOString();
      if (json) {
        print(JSON.stringify({ keyId, key, organizationId: org, scopes, expiresAt: expiry }));
      } else {
        print(`Key ${keyId} of ${org}, for ${scopes.join(" and ")}; expires ${expiry ?? "never"}:`);
        print(describeIssued(key));
      }
      return 0;
    }),
});
