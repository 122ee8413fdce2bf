import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { describeKeys, keyAsJson } from "./key.ts";
import { databaseOption, withDatabase } from "./operator-database.ts";
import { organizationOption } from "./org.ts";

export const keyList = defineCommand({
  usesEnvFile: true,
  options: { org: organizationOption, json: flag("print JSON"), database: databaseOption },

  run: ({ org, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const keys = await createOrganizationAdministration({ db, now: Date.now }).listKeys(org);
      print(json ? JSON.stringify(keys.map(keyAsJson)) : describeKeys(keys));
      return 0;
    }),
});
