import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SelectQueryNode,
} from "kysely";
import { UndeterminedError } from "../../../util/errors.ts";
import { countUsers, type DatabaseClock, type PipelinedConnection } from "../database.ts";
import { UnansweredError, UndoneError, untilDone } from "../transactions.ts";
import { LostConnectionError, type PostgresConnections, type PostgresResult } from "./postgres-connection.ts";
import {
  beginPostgresTransaction,
  createCommitMarks,
  type PostgresTransaction,
} from "./postgres-transaction.ts";

/** How long the response to a statement may take, in milliseconds. */
const statementTimeoutMs = 10_000;
/** Shorter for an urgent statement: when it is retried on a new connection, most of a lease must be left. */
const urgentTimeoutMs = 3_000;

/**
 * Kysely's dialect for Postgres over `pg`. Unlike Kysely's own, it
 * - keeps nothing in a session, so that a pooler may use another one for every transaction: no advisory locks, no named
 *   statements, settings only by SET LOCAL;
 * - reports with a failure whether the work took effect: see transactions.ts;
 * - looks up a commit whose response was lost;
 * - pipelines statements, without waiting for each response.
 *
 * It owns the connections: destroying the Kysely instance closes them. Urgent statements have connections of their own:
 * if the network drops packets, all others wait for timeouts, and those queued behind them wait several times as long.
 */
export function createPostgresDialect(
  connections: PostgresConnections,
  urgentConnections: PostgresConnections,
  clock: DatabaseClock,
): Dialect {
  return {
    createDriver: () => createDriver(connections, urgentConnections),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createAdapter: () => ({
      clock,
      supportsMultipleConnections: true,
      supportsCreateIfNotExists: true,
      supportsTransactionalDdl: true,
      supportsReturning: true,
      // Our migrations lock a row instead: see `open-database.ts`.
      acquireMigrationLock: async () => {},
      releaseMigrationLock: async () => {},
    }),
  };
}

/**
 * The connection that Kysely sees: a handle with its transaction, if any, and the statements whose responses only the
 * commit waits for.
 */
type Handle = PipelinedConnection & {
  transaction: PostgresTransaction | null;
  unanswered: Promise<unknown>[];
};

function createDriver(connections: PostgresConnections, urgentConnections: PostgresConnections): Driver {
  const marks = createCommitMarks(connections);
  const users = countUsers();
  const handles = new WeakMap<DatabaseConnection, Handle>();

  function handleOf(connection: DatabaseConnection): Handle {
    const handle = handles.get(connection);
    if (handle === undefined) throw new Error("This connection is of another driver");
    return handle;
  }

  function createHandle(): Handle {
    const handle: Handle = {
      transaction: null,
      unanswered: [],
      async executeQuery<R>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<R>> {
        const runOnce = () =>
          runAlone(
            connections,
            { sql, parameters, readsOnly: SelectQueryNode.is(query) },
            statementTimeoutMs,
          );
        const { rows, changes } = await (handle.transaction === null
          ? untilDone(runOnce)
          : handle.transaction.run(sql, parameters));
        // Kysely's contract: the rows have the shape of the query's type, which the schema types vouch for.
        return { rows: rows as R[], ...(changes === undefined ? {} : { numAffectedRows: changes }) };
      },
      sendUnanswered({ sql, parameters }) {
        if (handle.transaction === null) throw new Error("Only a transaction can wait for it");
        const answer = handle.transaction.run(sql, parameters);
        answer.catch(() => {}); // the commit reports it
        handle.unanswered.push(answer);
        return answer;
      },
      async runUrgently({ sql, parameters }) {
        await runAlone(urgentConnections, { sql, parameters, readsOnly: false }, urgentTimeoutMs);
      },
      // biome-ignore lint/correctness/useYield: it only ever throws
      async *streamQuery() {
        throw new Error("Streaming is not supported: it would occupy a connection for as long as it is read");
      },
    };
    handles.set(handle, handle);
    return handle;
  }

  return {
    init: async () => {},
    async acquireConnection() {
      users.enter();
      return createHandle();
    },
    releaseConnection: async () => users.leave(),
    async beginTransaction(connection, settings) {
      handleOf(connection).transaction = await beginPostgresTransaction(connections, marks, settings);
    },
    // If it throws, Kysely rolls back what is still open.
    async commitTransaction(connection) {
      const handle = handleOf(connection);
      const unanswered = handle.unanswered.splice(0);
      try {
        await handle.transaction?.commit();
      } catch (error) {
        throw await whyUndone(error, unanswered);
      }
      handle.transaction = null;
    },
    async rollbackTransaction(connection) {
      const handle = handleOf(connection);
      try {
        await handle.transaction?.rollback();
      } finally {
        handle.transaction = null;
        handle.unanswered.length = 0;
      }
    },
    async destroy() {
      await users.gone();
      await Promise.all([connections.close(), urgentConnections.close()]);
    },
  };
}

/** Runs a statement once, outside a transaction. If the connection is lost, a read can be repeated. */
async function runAlone(
  connections: PostgresConnections,
  { sql, parameters, readsOnly }: { sql: string; parameters: readonly unknown[]; readsOnly: boolean },
  timeoutMs: number,
): Promise<PostgresResult> {
  const connection = await connections.take();
  try {
    return await connection.run(sql, parameters, timeoutMs);
  } catch (error) {
    if (!(error instanceof LostConnectionError)) throw error;
    const Lost = readsOnly ? UndoneError : UnansweredError;
    throw new Lost("The database did not answer", { cause: error });
  } finally {
    connection.release();
  }
}

/** Returns why a commit failed: the failed statement's error if the server gives no more than that. */
async function whyUndone(error: unknown, unanswered: readonly Promise<unknown>[]): Promise<unknown> {
  // A lost connection or a database in trouble: only the commit's error says what was kept.
  if (error instanceof UndeterminedError) return error;
  const answers = await Promise.allSettled(unanswered);
  return answers.find((answer) => answer.status === "rejected")?.reason ?? error;
}
