import fc from "fast-check";
import { expect, test } from "vitest";
import { builtInNetworks } from "./networks.ts";
import { parseSettlementQuery } from "./parse-settlement-query.ts";
import { createSettlementQuerySchema } from "./settlement-query.ts";

const schema = createSettlementQuerySchema(builtInNetworks);

/** What the service makes of a query. */
function bySchema(parameters: Record<string, string>) {
  const { data, error } = schema.safeParse(parameters);
  if (error === undefined) return { query: data };
  return { problems: error.issues.map(({ path, message }) => [...path, message].join(" ")) };
}

const id = "ab".repeat(32);
const number = (most: number, digits: number) =>
  fc.nat(most).map((value) => String(value).padStart(digits, "0"));
const date = fc
  .tuple(number(9999, 4), number(13, 2), number(32, 2))
  .map(([year, month, day]) => `${year}-${month}-${day}`);
const time = fc
  .tuple(number(24, 2), number(60, 2), fc.constantFrom(":59", ":60", "", ":00.5", ":00.123456789", ":00."))
  .map(([hour, minute, second]) => `${hour}:${minute}${second}`);
const zone = fc.constantFrom("Z", "z", "", "+02:00", "-23:59", "+24:00", "+0200", " ");
const moment = fc.oneof(
  date,
  fc.tuple(date, fc.constantFrom("T", "t", " "), time, zone).map((parts) => parts.join("")),
);

const query = fc.dictionary(
  fc.constantFrom("network", "state", "payer", "from", "to", "limit", "cursor", "nettwork", 'a"b', "Limit"),
  fc.oneof(
    moment,
    fc.constantFrom(
      ...["base", "eip155:8453", "solana", "settled", "recovered", "Settled", `0x${"aB".repeat(20)}`],
      ...["1", "100", "101", "0", "007", "1e1", " 1", "", `1-${id}`, `1-${id.toUpperCase()}`],
      ...["2024-02-29", "2023-02-29", "2000-02-29", "1900-02-29", "2026-02-30", "0000-01-01"],
    ),
    fc.string(),
  ),
  { maxKeys: 5 },
);

test("queries drawn at random are read by hand as by the schema of the service", () => {
  let accepted = 0;
  fc.assert(
    fc.property(query, (drawn) => {
      const parameters = { ...drawn };
      const read = parseSettlementQuery(parameters, builtInNetworks);
      if (read.query !== undefined) accepted++;
      expect(read).toEqual(bySchema(parameters));
    }),
    { numRuns: 2_000 },
  );
  expect(accepted).toBeGreaterThan(100);
});

test("dates of all days, and of days that there are not, are read alike", () => {
  fc.assert(
    fc.property(moment, (from) => {
      expect(parseSettlementQuery({ from }, builtInNetworks)).toEqual(bySchema({ from }));
    }),
    { numRuns: 2_000 },
  );
});
