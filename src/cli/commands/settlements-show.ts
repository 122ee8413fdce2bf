import { readBytes32 } from "../../config/values.ts";
import { KitError } from "../../errors.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { databaseOption, withDatabase } from "./operator-database.ts";
import { settlementAsRecord } from "./settlements.ts";

export const settlementsShow = defineCommand({
  usesEnvFile: true,
  options: {
    id: {
      describe: "the settlement's id, as in the Location of the answer",
      placeholder: "ID",
      example: `0x${"0123456789abcdef".repeat(4)}`,
      read: readBytes32,
      required: true,
    },
    json: flag("print JSON"),
    database: databaseOption,
  },

  run: ({ id, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const ledger = createLedger({ db, instanceId: crypto.randomUUID(), now: Date.now });
      const settlement = await ledger.find(id);
      if (settlement === null) {
        throw new KitError(`There is no settlement ${id}`, {
          hints: [
            "Nothing was claimed for this payment: either it was never settled here, or it was refused.",
          ],
        });
      }
      const record = Object.entries(settlementAsRecord(settlement));
      if (json) {
        print(JSON.stringify(Object.fromEntries(record)));
      } else {
        const width = Math.max(...record.map(([name]) => name.length));
        for (const [name, value] of record) print(`${name.padEnd(width)}  ${value ?? "-"}`);
      }
      return 0;
    }),
});
