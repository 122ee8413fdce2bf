// Imported, not global, so that a test with fake timers does not stop its database.
import { clearTimeout, setTimeout } from "node:timers";
import type { Pool, PoolClient, QueryResult } from "pg";
import { UndeterminedError } from "../../../util/errors.ts";
import { UndoneError } from "../transactions.ts";

/** The result of one statement; `changes` is undefined for statements that change no rows, such as SELECT. */
export type PostgresResult = {
  command: string;
  rows: Record<string, unknown>[];
  changes: bigint | undefined;
};

/** The connection was lost while a statement was running; it is unknown whether the server ran it. */
export class LostConnectionError extends Error {
  override readonly name = "LostConnectionError";
}

/** A connection of the pool, held by one user. */
export type PostgresConnection = {
  /**
   * Runs a statement, or several separated by semicolons if there are no parameters; returns the last one's result.
   * `timeoutMs` limits the wait for the response: if the network drops packets, TCP waits for a quarter of an hour.
   * After a timeout the connection is unusable.
   *
   * @throws LostConnectionError, or what `explainPostgresError` makes of the server's error.
   */
  run(sql: string, parameters: readonly unknown[], timeoutMs?: number): Promise<PostgresResult>;
  /** Returns it to the pool, or closes it if it was lost. */
  release(): void;
};

/** The connections of one process. They own the pool. */
export type PostgresConnections = {
  /**
   * Takes a connection, first come, first served. As on SQLite, waiting in the queue has no time limit; callers set
   * their own.
   *
   * @throws UndoneError when the server cannot be reached; nothing has happened yet.
   */
  take(): Promise<PostgresConnection>;
  /** Closes all connections once none is in use. */
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

  /** Combines the statements sent in one tick into one write; otherwise each pipelined statement would be its own. */
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
      // With statements in flight, `pg` would keep it open until they are answered, which is never.
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

/**
 * The meaning of an error of `pg` for its statement:
 *
 * - `lost`: the connection was lost; it is unknown whether the server ran the statement;
 * - `undone`: the server rolled the transaction back because of others, and would accept it again;
 * - `late`: it took too long, mostly by waiting for another's lock;
 * - `unwritable`: the server accepts no writes;
 * - `refused`: any other error of the server, such as a violated constraint. Retrying gives it again.
 */
type PostgresFailure = "lost" | "undone" | "late" | "unwritable" | "refused";

/** Failures by SQLSTATE; see "PostgreSQL Error Codes" in the Postgres manual. */
const meanings: Readonly<Record<string, PostgresFailure>> = {
  "40001": "undone", // serialization_failure
  "40P01": "undone", // deadlock_detected
  "55P03": "late", // lock_not_available: lock_timeout
  "57014": "late", // query_canceled: statement_timeout
  "25006": "unwritable", // read_only_sql_transaction: a standby, or configured so
  "53100": "unwritable", // disk_full
  "58030": "unwritable", // io_error
  "53300": "lost", // too_many_connections
  "57P03": "lost", // cannot_connect_now: it is starting or stopping
};

/** Classifies the error of a query or a connection attempt. */
function classifyPostgresError(error: unknown): PostgresFailure {
  if (!isFromServer(error)) {
    // Values that cannot be written or read are our mistake; any other client error is about the connection.
    return error instanceof TypeError || error instanceof RangeError ? "refused" : "lost";
  }
  const meaning = meanings[error.code];
  if (meaning !== undefined) return meaning;
  // Class 08: connection exceptions, as reported by a pooler. 28 and 3D: wrong user, password or database name.
  if (error.code.startsWith("08")) return "lost";
  if (/^(28|3D)/.test(error.code)) return "refused";
  return error.severity === "FATAL" || error.severity === "PANIC" ? "lost" : "refused";
}

/** Returns the error to throw to the caller; the server's own if it refused. */
function explainPostgresError(error: unknown, failure: Exclude<PostgresFailure, "lost">): unknown {
  switch (failure) {
    case "undone":
      return new UndoneError("The database undid a transaction because of another one", { cause: error });
    case "late":
      return new UndeterminedError("The database took too long", {
        cause: error,
        hints: [
          "Look for a transaction that stays open, in pg_stat_activity, and for a server without power.",
        ],
      });
    case "unwritable":
      return new UndeterminedError("The database takes no writes", {
        cause: error,
        hints: ["Its disk is full or failing, or the server has become a read-only standby."],
      });
    case "refused":
      return error;
  }
}

function isFromServer(error: unknown): error is Error & { code: string; severity: string } {
  return (
    error instanceof Error &&
    "severity" in error &&
    typeof error.severity === "string" &&
    "code" in error &&
    typeof error.code === "string"
  );
}
