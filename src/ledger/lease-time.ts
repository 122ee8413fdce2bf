import { sql } from "kysely";
import type { DatabaseClock } from "./database/database.ts";

/** The current time for leases: the statement's own if the server has a clock. */
export function timeOf({ statementTime, now }: DatabaseClock) {
  return statementTime === undefined ? sql<number>`cast(${now()} as bigint)` : sql.raw<number>(statementTime);
}

/** The expiry of a lease that the statement takes or renews. */
export function leaseEnd(clock: DatabaseClock, leaseMs: number) {
  return sql<number>`${timeOf(clock)} + ${sql.lit(leaseMs)}`;
}
