import { InvalidValue, readBytes32, readMoment, readOneOf, readWholeNumber } from "../../config/values.ts";
import { isSetAside, type Settlement } from "../../ledger/settlement.ts";
import { type Cursor, readCursor, settlementStates, writeCursor } from "../../protocol/settlement-query.ts";
import { settlementAsRecord, settlementColumns } from "../../service/admin/settlement-record.ts";
import { KitError } from "../../util/errors.ts";
import { renderTable } from "../../util/text.ts";
import {
  addressOption,
  defineCommand,
  flag,
  onlyNetworkOptions,
  option,
  textOption,
} from "../kit/command.ts";
import { usesDatabase, withLedger } from "../kit/with-database.ts";

const usualLimit = 50;
const pageSize = 1_000;

export const settlementsList = defineCommand({
  ...usesDatabase,
  options: {
    org: textOption("ID", "only of this organization", { example: "org_0123456789abcdef" }),
    ...onlyNetworkOptions,
    state: option("STATE", `only in this state: ${settlementStates.join(", ")}`, {
      read: readOneOf(settlementStates),
      example: "settled",
    }),
    payer: addressOption("only of this payer"),
    from: option("TIME", "only those claimed at or after this time (UTC unless it has a zone)", {
      read: readMoment,
      example: "2026-11-01",
    }),
    to: option("TIME", "only those claimed before this time", {
      read: readMoment,
      example: "2026-12-01T00:00:00Z",
    }),
    limit: option("N", `how many at most, newest first (default ${usualLimit}; with --csv all)`, {
      read: readWholeNumber(1, 100_000_000),
      example: "100",
    }),
    cursor: option("CURSOR", "continue after a list that ended with this cursor", {
      read(text): Cursor {
        const cursor = readCursor(text);
        if (cursor === null)
          throw new InvalidValue(`"${text}" is not a cursor; a list that is cut short ends with one`);
        return cursor;
      },
    }),
    json: flag("print JSON"),
    csv: flag("print CSV (RFC 4180), for reconciliation: amounts in smallest units, times in ISO 8601"),
  },

  check: ({ json, csv }) =>
    json && csv ? [{ name: "--csv", problem: "and --json cannot be given together" }] : [],

  run: (
    { org: organizationId, network, state, payer, from, to, limit, cursor, json, csv },
    terminal,
    { databaseUrl },
  ) =>
    withLedger(databaseUrl, async (ledger) => {
      const filter = { organizationId, network, state, payer, from, to };
      const most = limit ?? (csv ? Number.POSITIVE_INFINITY : usualLimit);
      const listed: Settlement[] = [];
      const print = (text: string) => terminal.print(text);
      // RFC 4180 ends lines with CR LF; the terminal adds the LF.
      const printCsv = (fields: readonly (string | null)[]) => print(`${csvLine(fields)}\r`);

      if (csv) printCsv(settlementColumns);
      let next: Cursor | null = null;
      for (let count = 0, after = cursor; ; ) {
        const page = await ledger.claims.list(filter, { limit: Math.min(pageSize, most - count), after });
        if (csv) {
          for (const settlement of page.settlements) printCsv(Object.values(settlementAsRecord(settlement)));
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
    ["claimed", "organization", "network", "state", { right: "value" }, "payer", "transaction"],
    settlements.map((settlement) => {
      const record = settlementAsRecord(settlement);
      const { organizationId, network, state, payer } = settlement;
      return [
        record.claimedAt ?? "",
        organizationId,
        network,
        isSetAside(settlement, Date.now()) ? `${state} (set aside)` : state,
        record.value ?? "",
        payer,
        record.transaction ?? "",
      ];
    }),
  );
}

export const settlementsShow = defineCommand({
  ...usesDatabase,
  options: {
    id: option("ID", "the settlement's id, as in the Location of the answer", {
      read: readBytes32,
      example: `0x${"0123456789abcdef".repeat(4)}`,
      required: true,
    }),
  },

  run: ({ id }, _terminal, { databaseUrl }) =>
    withLedger(databaseUrl, async (ledger) => {
      const settlement = await ledger.claims.find(id);
      if (settlement === null) {
        throw new KitError(`There is no settlement ${id}`, {
          code: "not-found",
          hints: [
            "Nothing was claimed for this payment: either it was never settled here, or it was refused.",
          ],
        });
      }
      const record = settlementAsRecord(settlement);
      return { json: record, text: describeSettlement(record) };
    }),
});

/** One line per field. */
export function describeSettlement(record: Readonly<Record<string, string | null>>): string {
  const width = Math.max(...Object.keys(record).map((name) => name.length));
  return Object.entries(record)
    .map(([name, text]) => `${name.padEnd(width)}  ${text ?? "-"}`)
    .join("\n");
}

/** One line of CSV (RFC 4180) without its line break. Fields with commas, quotes or line breaks are quoted; null is empty. */
function csvLine(fields: readonly (string | null)[]): string {
  return fields.map((field) => quoteField(field ?? "")).join(",");
}

function quoteField(field: string): string {
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
