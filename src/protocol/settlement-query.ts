import { type Address, type Hex, isAddress } from "./hex.ts";
import type { NetworkName, NetworkRegistry } from "./networks.ts";
import { addressFault } from "./wire-values.ts";

/** The states of a settlement; the ledger defines their meaning. */
export const settlementStates = ["submitted", "settled", "failed", "recovered"] as const;

/** The most settlements per page. */
export const largestPage = 100;
/** Settlements per page by default. */
export const usualPage = 50;

const queryFaults = {
  network: "is not a network of this service",
  state: `must be one of ${settlementStates.join(", ")}`,
  time: "must be an ISO 8601 date, or date and time with zone",
  limit: `must be a whole number from 1 to ${largestPage}`,
  cursor: "is none that this service gave",
  repeated: "must be given once",
} as const;

/** The parameters of a listing; times are Unix milliseconds. */
export type SettlementQuery = {
  network?: NetworkName;
  state?: (typeof settlementStates)[number];
  payer?: Address;
  from?: number;
  to?: number;
  limit?: number;
  cursor?: Cursor;
};

/**
 * Reads the parameters of a listing; by hand, since the fixtures also do so in browsers. An unknown parameter is an
 * error: if ignored, a typo in a filter would list everything.
 *
 * @returns the query, or everything that is wrong with it
 */
export function parseSettlementQuery(
  parameters: Readonly<Record<string, unknown>>,
  known: NetworkRegistry,
): { query: SettlementQuery; problems?: undefined } | { query?: undefined; problems: readonly string[] } {
  const query: SettlementQuery = {};
  const problems: string[] = [];
  const rest = new Map(Object.entries(parameters));

  function take<Name extends keyof SettlementQuery>(
    name: Name,
    fault: string | ((text: string) => string),
    read: (text: string) => SettlementQuery[Name] | undefined,
  ): void {
    const text = rest.get(name);
    rest.delete(name);
    if (text === undefined) return;
    const value = typeof text === "string" ? read(text) : undefined;
    if (value !== undefined) query[name] = value;
    else if (typeof text !== "string") problems.push(`${name} ${queryFaults.repeated}`);
    else problems.push(`${name} ${typeof fault === "string" ? fault : fault(text)}`);
  }

  take("network", queryFaults.network, (name) => (known.find(name, 1) ?? known.find(name, 2))?.name);
  take("state", queryFaults.state, (text) => settlementStates.find((state) => state === text));
  take("payer", addressFault, (text) => (isAddress(text) ? text : undefined));
  take("from", queryFaults.time, readTime);
  take("to", queryFaults.time, readTime);
  take("limit", queryFaults.limit, (text) =>
    /^[1-9]\d{0,2}$/.test(text) && Number(text) <= largestPage ? Number(text) : undefined,
  );
  take("cursor", queryFaults.cursor, (text) => readCursor(text) ?? undefined);
  if (rest.size > 0) {
    const names = [...rest.keys()].map((name) => `"${name}"`);
    problems.push(`Unrecognized key${names.length > 1 ? "s" : ""}: ${names.join(", ")}`);
  }
  return problems.length === 0 ? { query } : { problems };
}

const form =
  /^(\d{4})-(\d\d)-(\d\d)(T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))?$/;

/** Unix milliseconds of an existing date, or of a time on one; otherwise undefined. */
function readTime(text: string): number | undefined {
  const [, year = "", month = "", day = ""] = form.exec(text) ?? [];
  if (year === "" || day === "00") return undefined;
  // Date accepts days up to 31 and carries the excess over to the next month.
  const date = new Date(`${year}-${month}-${day}T00:00:00Z`);
  const exists = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(`${year}-${month}-${day}`);
  return exists ? Date.parse(text) : undefined;
}

/** A position in a list of settlements: after this one. */
export type Cursor = { claimedAt: number; id: Hex };

/** Writes a cursor as text that needs no escaping in URLs and command lines. */
export function writeCursor({ claimedAt, id }: Cursor): string {
  return `${claimedAt}-${id.slice(2)}`;
}

/** Reads a cursor; null if the text is not one. */
export function readCursor(text: string): Cursor | null {
  const [, claimedAt, id] = /^(\d{1,15})-([0-9a-f]{64})$/.exec(text) ?? [];
  return claimedAt === undefined || id === undefined ? null : { claimedAt: Number(claimedAt), id: `0x${id}` };
}
