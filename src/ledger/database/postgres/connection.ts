// Imported, not global: a test that installs fake timers must not stop its database.
import { clearTimeout, setTimeout } from "node:timers";
import type { Pool, PoolClient, QueryResult } from "pg";
import type { StatementResult } from "../dialect.ts";
import { UndoneError } from "../retrying.ts";
import { classifyPostgresError, explainPostgresError } from "./failure.ts";

/** What running one statement gave. */
export type PostgresResult = StatementResult & { command: string };

/** The connection was lost while a statement was running: whether the server ran it is unknown. */
export class LostConnectionError extends Error {
  override readonly name = "LostConnectionError";
}

/** One of the pool's connections, in the hands of one user. */
export type PostgresConnection = {
  /**
   * Runs a statement, or several separated by semicolons when there are no parameters; gives the last one's result.
   * `timeoutMs` bounds the wait for the answer: a network that swallows packets keeps TCP waiting for a quarter of an
   * hour. The connection is useless afterwards.
   *
   * @throws LostConnectionError, or what `explainPostgresError` makes of the server's error.
   */
  run(sql: string, parameters: readonly unknown[], timeoutMs?: number): Promise<PostgresResult>;
  /** Gives it back to the pool, or ends it when it was lost. */
  release(): void;
};

/** The connections of one process, which owns the pool from now on. */
export type PostgresConnections = {
  /**
   * Takes a connection when its turn has come, in the order of asking. Waiting for one's turn has no time limit, as on
   * SQLite: callers set their own.
   *
   * @throws UndoneError when the server cannot be reached: nothing has happened yet.
   */
  take(): Promise<PostgresConnection>;
  /** Closes all, when none is in use any more. */
  close(): Promise<void>;
};

export function createPostgresConnections(pool: Pool): PostgresConnections {
  let free = pool.options.max;
  const waiting: (() => void)[] = [];

  const giveTurn = () => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };

  return {
    async take() {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        const { run, release } = await connect(pool);
        return {
          run,
          release() {
            release();
            giveTurn();
          },
        };
      } catch (error) {
        giveTurn();
        throw error;
      }
    },
    close: () => pool.end(),
  };
}

async function connect(pool: Pool): Promise<PostgresConnection> {
  let client: PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    const failure = classifyPostgresError(error);
    if (failure !== "lost") throw explainPostgresError(error, failure);
    throw new UndoneError("The database cannot be reached", { cause: error });
  }
  let lost = false;
  const onError = () => {
    lost = true;
  };
  client.on("error", onError);
  const { stream } = client.connection;
  let isGathering = false;

  /** What is sent in one turn leaves in one write: of statements that wait for no answer, each would be one. */
  function gather(): void {
    if (isGathering) return;
    isGathering = true;
    stream.cork();
    process.nextTick(() => {
      isGathering = false;
      stream.uncork();
    });
  }

  return {
    async run(sql, parameters, timeoutMs) {
      if (lost) throw new LostConnectionError("The connection to the database has been lost");
      gather();
      const answer = client.query(sql, [...parameters]);
      try {
        return toResult(await (timeoutMs === undefined ? answer : withTimeout(answer, timeoutMs)));
      } catch (error) {
        const failure = lost ? "lost" : classifyPostgresError(error);
        if (failure !== "lost") throw explainPostgresError(error, failure);
        lost = true;
        throw new LostConnectionError("The connection to the database was lost", { cause: error });
      }
    },
    release() {
      client.off("error", onError);
      client.release(lost);
      // With statements under way, `pg` would keep it open until they are answered, and so for ever.
      if (lost) stream.destroy();
    },
  };
}

function withTimeout<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${timeoutMs} ms`)), timeoutMs);
  answer.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}

function toResult(results: QueryResult | QueryResult[]): PostgresResult {
  const result = Array.isArray(results) ? results.at(-1) : results;
  if (result === undefined) throw new TypeError("The database answered nothing");
  const { command, rows, rowCount } = result;
  const changes = rowCount !== null && /^(INSERT|UPDATE|DELETE|MERGE)$/.test(command);
  return { command, rows, changes: changes ? BigInt(rowCount) : undefined };
}
