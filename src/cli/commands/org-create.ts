import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { actorOption, actorOr, databaseOption, withDatabase } from "./operator-database.ts";
import { organizationAsJson } from "./org.ts";

export const orgCreate = defineCommand({
  usesEnvFile: true,
  options: {
    name: {
      describe: "what people call it",
      placeholder: "NAME",
      example: "Coffee shop",
      read: (text) => text,
      required: true,
    },
    id: {
      describe: "its id, of letters, digits, _ and - (default one that is drawn)",
      placeholder: "ID",
      example: "coffee-shop",
      read: (text): string | undefined => text,
      fallback: undefined,
    },
    actor: actorOption,
    json: flag("print JSON"),
    database: databaseOption,
  },

  run: ({ name, id, actor, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const now = Date.now;
      const organizations = createOrganizationAdministration({ db, now, actor: actorOr(actor) });
      const created = await organizations.create({ name, ...(id === undefined ? {} : { id }) });
      if (json) {
        print(JSON.stringify(organizationAsJson(created)));
      } else {
        print(`Created ${created.id} (${name}). Next:`);
        print(`  x402-kit org set-recipient --id ${created.id} --network NAME --address 0x…`);
        print(`  x402-kit key create --org ${created.id}`);
      }
      return 0;
    }),
});
