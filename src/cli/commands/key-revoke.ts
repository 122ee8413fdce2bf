import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { keyOption } from "./key.ts";
import { actorOption, actorOr, databaseOption, withDatabase } from "./operator-database.ts";

export const keyRevoke = defineCommand({
  usesEnvFile: true,
  options: { id: keyOption, actor: actorOption, json: flag("print JSON"), database: databaseOption },

  // Without the pepper: a key that has leaked must not wait for somebody who knows where that is kept.
  run: ({ id, actor, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const now = Date.now;
      await createOrganizationAdministration({ db, now, actor: actorOr(actor) }).revokeKey(id);
      print(
        json
          ? JSON.stringify({ keyId: id, state: "revoked" })
          : `Key ${id} is revoked. Every instance refuses it within a second.`,
      );
      return 0;
    }),
});
