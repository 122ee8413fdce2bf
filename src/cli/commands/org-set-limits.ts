import { readLimit } from "../../config/values.ts";
import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { networkOption } from "../kit/network-option.ts";
import { flag } from "../kit/readers.ts";
import { actorOption, actorOr, databaseOption, withDatabase } from "./operator-database.ts";
import { describeNetworks, organizationAsJson, organizationOption } from "./org.ts";

export const orgSetLimits = defineCommand({
  usesEnvFile: true,
  options: {
    id: organizationOption,
    network: networkOption,
    "minimum-amount": {
      describe: "least amount that is settled, in the asset's smallest unit, or `none` (default as it is)",
      placeholder: "UNITS",
      example: "10000",
      read: (text): bigint | null | undefined => readLimit(text),
      fallback: undefined,
    },
    "daily-gas-budget": {
      describe: "most that settling may cost in gas per day (UTC), in wei, or `none` (default as it is)",
      placeholder: "WEI",
      example: "5000000000000000",
      read: (text): bigint | null | undefined => readLimit(text),
      fallback: undefined,
    },
    actor: actorOption,
    json: flag("print JSON"),
    database: databaseOption,
  },

  check: (values) =>
    // One that was given and could not be read is not among the values.
    ["minimum-amount", "daily-gas-budget"].every((name) => name in values) &&
    values["minimum-amount"] === undefined &&
    values["daily-gas-budget"] === undefined
      ? [
          {
            name: "--minimum-amount",
            problem: "or --daily-gas-budget is needed",
            example: "--minimum-amount 10000",
          },
        ]
      : [],

  run: ({ id, network, actor, json, database, ...values }, { print }) =>
    withDatabase(database, async (db) => {
      const now = Date.now;
      const organizations = createOrganizationAdministration({ db, now, actor: actorOr(actor) });
      await organizations.setLimits(id, network, {
        minimumAmount: values["minimum-amount"],
        dailyGasBudget: values["daily-gas-budget"],
      });
      const organization = await organizations.find(id);
      if (organization !== null) {
        print(json ? JSON.stringify(organizationAsJson(organization)) : describeNetworks(organization));
      }
      return 0;
    }),
});
