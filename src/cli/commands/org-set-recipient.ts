import { readAddress } from "../../config/values.ts";
import { createOrganizationAdministration } from "../../organizations/create-organizations.ts";
import { defineCommand } from "../kit/command.ts";
import { networkOption } from "../kit/network-option.ts";
import { flag } from "../kit/readers.ts";
import { actorOption, actorOr, databaseOption, withDatabase } from "./operator-database.ts";
import { organizationOption } from "./org.ts";

export const orgSetRecipient = defineCommand({
  usesEnvFile: true,
  options: {
    id: organizationOption,
    network: networkOption,
    address: {
      describe: "the wallet that is paid; settlements that are under way still go to the one before",
      placeholder: "ADDRESS",
      example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      read: readAddress,
      required: true,
    },
    actor: actorOption,
    json: flag("print JSON"),
    database: databaseOption,
  },

  run: ({ id, network, address, actor, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const now = Date.now;
      const organizations = createOrganizationAdministration({ db, now, actor: actorOr(actor) });
      await organizations.setRecipient(id, network, address);
      print(
        json
          ? JSON.stringify({ id, network, recipient: address })
          : `${id} is paid at ${address} on ${network}, on every instance within a second.`,
      );
      return 0;
    }),
});
