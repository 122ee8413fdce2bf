import { KitError } from "../../errors.ts";
import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { renderTable } from "../kit/table.ts";
import { describeKeys, keyAsJson } from "./key.ts";
import { databaseOption, withDatabase } from "./operator-database.ts";
import { describeNetworks, organizationAsJson, organizationOption } from "./org.ts";

export const orgShow = defineCommand({
  usesEnvFile: true,
  options: { id: organizationOption, json: flag("print JSON"), database: databaseOption },

  run: ({ id, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const organizations = createOrganizationAdministration({ db, now: Date.now });
      const organization = await organizations.find(id);
      if (organization === null) throw new KitError(`There is no organization ${JSON.stringify(id)}`);
      const [keys, changes] = [await organizations.listKeys(id), await organizations.listChanges(id)];
      if (json) {
        print(
          JSON.stringify({
            ...organizationAsJson(organization),
            keys: keys.map(keyAsJson),
            changes: changes.map((change) => ({ ...change, at: new Date(change.at).toISOString() })),
          }),
        );
        return 0;
      }
      print(`${organization.id}: ${organization.name}\n`);
      print(describeNetworks(organization));
      print(`\nKeys\n${describeKeys(keys)}`);
      const columns = [
        { heading: "#", right: true },
        { heading: "time" },
        { heading: "who" },
        { heading: "what" },
        { heading: "details" },
      ];
      const rows = changes.map(({ number, at, actor, action, details }) => [
        String(number),
        new Date(at).toISOString(),
        actor,
        action,
        describeDetails(details),
      ]);
      print(`\nChanges\n${renderTable(columns, rows)}`);
      return 0;
    }),
});

/** `network base, from 0x…, to 0x…`. */
function describeDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name} ${isTime(name, value) ? new Date(value).toISOString() : String(value)}`)
    .join(", ");
}

function isTime(name: string, value: unknown): value is number {
  return /expiresAt$/i.test(name) && typeof value === "number";
}
