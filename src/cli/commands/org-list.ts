import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { renderTable } from "../kit/table.ts";
import { databaseOption, withDatabase } from "./operator-database.ts";
import { organizationAsJson } from "./org.ts";

export const orgList = defineCommand({
  usesEnvFile: true,
  options: { json: flag("print JSON"), database: databaseOption },

  run: ({ json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const organizations = await createOrganizationAdministration({ db, now: Date.now }).list();
      if (json) {
        print(JSON.stringify(organizations.map(organizationAsJson)));
      } else if (organizations.length === 0) {
        print("There is no organization yet: x402-kit org create --name NAME");
      } else {
        const columns = [{ heading: "id" }, { heading: "name" }, { heading: "paid on" }];
        const rows = organizations.map(({ id, name, recipients }) => [
          id,
          name,
          Object.keys(recipients).join(", ") || "no network yet",
        ]);
        print(renderTable(columns, rows));
      }
      return 0;
    }),
});
