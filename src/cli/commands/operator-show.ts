import { readAddress } from "../../config/values.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import { networks } from "../../protocol/networks.ts";
import { defineCommand } from "../kit/command.ts";
import { networkOption } from "../kit/network-option.ts";
import { flag } from "../kit/readers.ts";
import { renderTable } from "../kit/table.ts";
import { databaseOption, withDatabase } from "./operator-database.ts";

export const operatorShow = defineCommand({
  usesEnvFile: true,
  options: {
    network: networkOption,
    operator: {
      describe: "the operator's account",
      placeholder: "ADDRESS",
      example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      read: readAddress,
      required: true,
    },
    json: flag("print JSON"),
    database: databaseOption,
  },

  run: ({ network, operator, json, database }, { print }) =>
    withDatabase(database, async (db) => {
      const ledger = createLedger({ db, instanceId: crypto.randomUUID(), now: Date.now });
      const { chainId } = networks[network];
      const next = await ledger.nextTxNonce(chainId, operator);
      const changes = (await ledger.operatorChanges(chainId, operator)).map((change) => ({
        ...change,
        at: new Date(change.at).toISOString(),
      }));
      if (json) {
        print(JSON.stringify({ network, operator, nextTxNonce: next, changes }));
        return 0;
      }
      print(
        next === null
          ? `The database knows no operator ${operator} on ${network}.`
          : `${operator} goes on at txNonce ${next} on ${network}.`,
      );
      if (changes.length > 0) {
        const columns = [
          { heading: "time" },
          { heading: "who" },
          { heading: "from", right: true },
          { heading: "to", right: true },
        ];
        print(
          renderTable(
            columns,
            changes.map(({ at, actor, from, to }) => [at, actor, String(from), String(to)]),
          ),
        );
      }
      return 0;
    }),
});
