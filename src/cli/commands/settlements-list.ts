import { InvalidValue, readAddress, readMoment, readOneOf, readWholeNumber } from "../../config/values.ts";
import { createLedger } from "../../ledger/create-ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import { settlementStates } from "../../protocol/answers.ts";
import { type Cursor, readCursor, writeCursor } from "../../protocol/cursor.ts";
import type { Address } from "../../protocol/hex.ts";
import { defineCommand } from "../kit/command.ts";
import { onlyNetworkOption } from "../kit/network-option.ts";
import { flag } from "../kit/readers.ts";
import { renderTable } from "../kit/table.ts";
import { databaseOption, withDatabase } from "./operator-database.ts";
import { settlementAsRecord, settlementColumns } from "./settlements.ts";
import { csvLine } from "./settlements-csv.ts";

const usualLimit = 50;
/** Settlements read at a time. */
const pageSize = 1_000;

export const settlementsList = defineCommand({
  usesEnvFile: true,
  options: {
    org: {
      describe: "only of this organization",
      placeholder: "ID",
      example: "org_0123456789abcdef",
      read: (text): string | undefined => text,
      fallback: undefined,
    },
    network: onlyNetworkOption,
    state: {
      describe: `only in this state: ${settlementStates.join(", ")}`,
      placeholder: "STATE",
      example: "settled",
      read: (text): (typeof settlementStates)[number] | undefined => readOneOf(settlementStates)(text),
      fallback: undefined,
    },
    payer: {
      describe: "only of this payer",
      placeholder: "ADDRESS",
      example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      read: (text): Address | undefined => readAddress(text),
      fallback: undefined,
    },
    from: {
      describe: "only those claimed at or after this time (UTC unless it has a zone)",
      placeholder: "TIME",
      example: "2026-11-01",
      read: (text): number | undefined => readMoment(text),
      fallback: undefined,
    },
    to: {
      describe: "only those claimed before this time",
      placeholder: "TIME",
      example: "2026-12-01T00:00:00Z",
      read: (text): number | undefined => readMoment(text),
      fallback: undefined,
    },
    limit: {
      describe: `at most so many, newest first (default ${usualLimit}; with --csv all)`,
      placeholder: "N",
      example: "100",
      read: (text): number | undefined => readWholeNumber(1, 100_000_000)(text),
      fallback: undefined,
    },
    cursor: {
      describe: "go on after the last list, which ended with this",
      placeholder: "CURSOR",
      read(text): Cursor | undefined {
        const cursor = readCursor(text);
        if (cursor === null)
          throw new InvalidValue(`"${text}" is not a cursor; a list that is cut short ends with one`);
        return cursor;
      },
      fallback: undefined,
    },
    json: flag("print JSON"),
    csv: flag("print CSV (RFC 4180), for reconciliation: amounts in smallest units, times in ISO 8601"),
    database: databaseOption,
  },

  check: ({ json, csv }) =>
    json && csv ? [{ name: "--csv", problem: "and --json cannot be given together" }] : [],

  run: (
    { org: organizationId, network, state, payer, from, to, limit, cursor, json, csv, database },
    terminal,
  ) =>
    withDatabase(database, async (db) => {
      const ledger = createLedger({ db, instanceId: crypto.randomUUID(), now: Date.now });
      const filter = { organizationId, network, state, payer, from, to };
      const most = limit ?? (csv ? Number.POSITIVE_INFINITY : usualLimit);
      const listed: Settlement[] = [];
      const print = (text: string) => terminal.print(text);
      // The line break of RFC 4180 is CR and LF, the second of which is the terminal's.
      const printCsv = (fields: readonly (string | null)[]) => print(`${csvLine(fields)}\r`);

      if (csv) printCsv(settlementColumns);
      let next: Cursor | null = null;
      for (let count = 0, after = cursor; ; ) {
        const page = await ledger.list(filter, { limit: Math.min(pageSize, most - count), after });
        if (csv) {
          for (const settlement of page.settlements) {
            const record = settlementAsRecord(settlement);
            printCsv(settlementColumns.map((column) => record[column]));
          }
        } else {
          listed.push(...page.settlements);
        }
        count += page.settlements.length;
        next = page.next;
        if (next === null || count >= most) break;
        after = next;
      }
      const goOn = next === null ? null : writeCursor(next);
      if (json) {
        print(JSON.stringify({ settlements: listed.map(settlementAsRecord), next: goOn }));
      } else if (!csv) {
        print(listed.length === 0 ? "No settlements." : describeSettlements(listed));
      }
      if (!json && goOn !== null) terminal.printError(`There are more: --cursor ${goOn}`);
      return 0;
    }),
});

function describeSettlements(settlements: readonly Settlement[]): string {
  return renderTable(
    [
      { heading: "claimed" },
      { heading: "organization" },
      { heading: "network" },
      { heading: "state" },
      { heading: "value", right: true },
      { heading: "payer" },
      { heading: "transaction" },
    ],
    settlements.map((settlement) => {
      const { claimedAt, organizationId, network, state, value, payer, transaction } =
        settlementAsRecord(settlement);
      return [claimedAt, organizationId, network, state, value, payer, transaction];
    }),
  );
}
