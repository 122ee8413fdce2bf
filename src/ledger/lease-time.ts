import { sql } from "kysely";
import type { DatabaseClock } from "./database/database.ts";

/** The time by which leases run out: where the server has a clock, that of the statement itself. */
export function timeOf({ statementTime, now }: DatabaseClock) {
  return statementTime === undefined ? sql<number>`cast(${now()} as bigint)` : sql.raw<number>(statementTime);
}

/** When a lease runs out that is taken or renewed by the statement. */
export function leaseEnd(clock: DatabaseClock, leaseMs: number) {
  return sql<number>`${timeOf(clock)} + ${sql.lit(leaseMs)}`;
}
