import type { DatabaseClock } from "../database.ts";
import type { PostgresConnections } from "./postgres-connection.ts";

/** When a statement begins, in unix milliseconds. An index can be searched by it, as it does not change within a statement. */
export const statementTime = "(extract(epoch from statement_timestamp()) * 1000)::bigint";

/** After this long the clock is read again, in milliseconds. */
const readAgainMs = 10_000;
/** An answer that took longer than this says too little, in milliseconds. */
const slowMs = 1_000;
const answerTimeoutMs = 10_000;

/** Reads the server's clock, and goes on from there by this process's monotonic one, which nobody sets. */
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
      // A failed reading is repeated later; until then the last answer holds.
      if (time - readAt > readAgainMs) read(false).catch(() => {});
      return Math.round(time + offset);
    },
  };
}
