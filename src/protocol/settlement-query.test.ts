import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { builtInNetworks } from "./networks.ts";
import { address } from "./primitives.ts";
import { parseSettlementQuery, readCursor, settlementStates } from "./settlement-query.ts";

const timeFault = "must be an ISO 8601 date, or date and time with zone";
const limitFault = "must be a whole number from 1 to 100";
const cursorFault = "is none that this service gave";
const time = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], timeFault)
  .transform((text) => Date.parse(text));

/** The same reader, made with a library that is too large for browser pages. */
const schema = z
  .strictObject({
    network: z
      .string()
      .transform((name) => builtInNetworks.find(name, 1) ?? builtInNetworks.find(name, 2))
      .refine((network) => network !== undefined, "is not a network of this service")
      .transform((network) => network?.name),
    state: z.enum(settlementStates, "must be one of submitted, settled, failed, recovered"),
    payer: address,
    from: time,
    to: time,
    limit: z
      .string()
      .regex(/^[1-9]\d{0,2}$/, limitFault)
      .transform(Number)
      .refine((limit) => limit <= 100, limitFault),
    cursor: z
      .string()
      .transform((text) => readCursor(text))
      .refine((cursor) => cursor !== null, cursorFault),
  })
  .partial();

/** A query as the schema reads it. */
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
const timeOfDay = fc
  .tuple(number(24, 2), number(60, 2), fc.constantFrom(":59", ":60", "", ":00.5", ":00.123456789", ":00."))
  .map(([hour, minute, second]) => `${hour}:${minute}${second}`);
const zone = fc.constantFrom("Z", "z", "", "+02:00", "-23:59", "+24:00", "+0200", " ");
const moment = fc.oneof(
  date,
  fc.tuple(date, fc.constantFrom("T", "t", " "), timeOfDay, zone).map((parts) => parts.join("")),
);

const query = fc.dictionary(
  fc.constantFrom("network", "state", "payer", "from", "to", "limit", "cursor", "nettwork", 'a"b', "Limit"),
  fc.oneof(
    moment,
    fc.constantFrom(
      ...[
        "base",
        "eip155:8453",
        "solana",
        "settled",
        "recovered",
        "Settled",
        "0x",
        "0x12",
        `0x${"aB".repeat(20)}`,
      ],
      ...["1", "100", "101", "0", "007", "1e1", " 1", "", `1-${id}`, `1-${id.toUpperCase()}`],
      ...["2024-02-29", "2023-02-29", "2000-02-29", "1900-02-29", "2026-02-30", "0000-01-01"],
    ),
    fc.string(),
  ),
  { maxKeys: 5 },
);

test("queries drawn at random are read as a schema would read them", () => {
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

test("dates, and days that do not exist, are read as the schema reads them", () => {
  fc.assert(
    fc.property(moment, (from) => {
      expect(parseSettlementQuery({ from }, builtInNetworks)).toEqual(bySchema({ from }));
    }),
    { numRuns: 2_000 },
  );
});

test("a parameter that comes twice is refused", () => {
  const { problems } = parseSettlementQuery({ limit: ["1", "2"], state: "settled" }, builtInNetworks);
  expect(problems).toEqual(["limit must be given once"]);
});
