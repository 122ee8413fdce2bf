import type { DatabaseClock } from "../database.ts";
import type { PostgresConnections } from "./postgres-connection.ts";

/** The start of the statement, in unix milliseconds. It is constant within a statement, so it can be used with an index. */
export const statementTime = "(extract(epoch from statement_timestamp()) * 1000)::bigint";

/** The clock is read again after this time, in milliseconds. */
const readAgainMs = 10_000;
/** A response slower than this is too imprecise, in milliseconds. */
const slowMs = 1_000;
const answerTimeoutMs = 10_000;

/** Reads the server's clock, then follows this process's monotonic clock, which nobody can set. */
export async function openPostgresClock(connections: PostgresConnections): Promise<DatabaseClock> {
  let offset = 0;
  let readAt = performance.now();

  async function read(isFirst: boolean): Promise<void> {
    readAt = performance.now();
    const connection = await connections.take();
    try {
      const sentAt = performance.now();
      const { rows } = await connection.run(`select ${statementTime} as time`, [], answerTimeoutMs);
      const answeredAt = performance.now();
      if (isFirst || answeredAt - sentAt < slowMs) offset = Number(rows[0]?.time) - (sentAt + answeredAt) / 2;
    } finally {
      connection.release();
    }
  }

  await read(true);
  return {
    statementTime,
    now() {
      const time = performance.now();
      // A failed read is repeated later; until then the last offset holds.
      if (time - readAt > readAgainMs) read(false).catch(() => {});
      return Math.round(time + offset);
    },
  };
}
