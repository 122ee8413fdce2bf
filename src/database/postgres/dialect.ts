import {
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SelectQueryNode,
} from "kysely";
import { UnansweredError, UndoneError, untilDone } from "../retrying.ts";
import { createCommitMarks } from "./commits.ts";
import { LostConnectionError, type PostgresConnection, type PostgresConnections } from "./connection.ts";
import { beginPostgresTransaction, type PostgresTransaction } from "./transaction.ts";

/** A connection as Kysely sees it: a handle that takes one of the pool's for a statement, or for a transaction. */
type Handle = DatabaseConnection & { transaction: PostgresTransaction | null };

/** How long the answer to a statement may take, in milliseconds. */
const statementPatienceMs = 10_000;

/**
 * Kysely's dialect for Postgres by `pg`. Beside what Kysely's own has it
 * - keeps nothing in a session, so that a pooler in between may give every transaction another one: no advisory locks,
 *   no named statements, and settings by SET LOCAL alone;
 * - says of a failure whether the work has happened: see retrying.ts;
 * - looks a commit up whose answer was lost.
 *
 * It owns the connections: destroying the Kysely instance closes them.
 */
export function createPostgresDialect(connections: PostgresConnections): Dialect {
  return {
    createDriver: () => createPostgresDriver(connections),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createAdapter: () => ({
      supportsMultipleConnections: true,
      supportsCreateIfNotExists: true,
      supportsTransactionalDdl: true,
      supportsReturning: true,
      // Our migrations lock by a row: see migrate.ts.
      acquireMigrationLock: async () => {},
      releaseMigrationLock: async () => {},
    }),
  };
}

function createPostgresDriver(connections: PostgresConnections): Driver {
  const handles = new WeakMap<DatabaseConnection, Handle>();
  const marks = createCommitMarks(connections);

  /** Runs a statement by itself. One that only reads is repeated when its connection was lost. */
  function runAlone(sql: string, parameters: readonly unknown[], readsOnly: boolean) {
    return untilDone(() =>
      withConnection(async (connection) => {
        try {
          return await connection.run(sql, parameters, statementPatienceMs);
        } catch (error) {
          if (!(error instanceof LostConnectionError)) throw error;
          const Lost = readsOnly ? UndoneError : UnansweredError;
          throw new Lost("The database did not answer", { cause: error });
        }
      }),
    );
  }

  async function withConnection<T>(work: (connection: PostgresConnection) => Promise<T>): Promise<T> {
    const connection = await connections.take();
    try {
      return await work(connection);
    } finally {
      connection.release();
    }
  }

  function createHandle(): Handle {
    const handle: Handle = {
      transaction: null,
      async executeQuery<R>({ sql, parameters, query }: Parameters<DatabaseConnection["executeQuery"]>[0]) {
        const { command, rows, changes } =
          handle.transaction === null
            ? await runAlone(sql, parameters, SelectQueryNode.is(query))
            : await handle.transaction.run(sql, parameters);
        const changed = changes !== null && /^(INSERT|UPDATE|DELETE|MERGE)$/.test(command);
        // Kysely's contract: the rows have the shape of the query's type, which the schema types vouch for.
        return { rows: rows as R[], ...(changed ? { numAffectedRows: BigInt(changes) } : {}) };
      },
      // biome-ignore lint/correctness/useYield: it only ever throws
      async *streamQuery() {
        throw new Error(
          "Streaming is not supported: a cursor would keep a connection for as long as it is read",
        );
      },
    };
    handles.set(handle, handle);
    return handle;
  }

  function own(connection: DatabaseConnection): Handle {
    const known = handles.get(connection);
    if (known === undefined) throw new Error("This connection is of another driver");
    return known;
  }

  return {
    init: async () => {},
    async acquireConnection() {
      connections.enter();
      return createHandle();
    },
    releaseConnection: async () => connections.leave(),

    async beginTransaction(connection, settings) {
      own(connection).transaction = await beginPostgresTransaction(connections, marks, settings);
    },
    // Where it throws, Kysely rolls back what is still open.
    async commitTransaction(connection) {
      const handle = own(connection);
      await handle.transaction?.commit();
      handle.transaction = null;
    },
    async rollbackTransaction(connection) {
      const handle = own(connection);
      try {
        await handle.transaction?.rollback();
      } finally {
        handle.transaction = null;
      }
    },
    destroy: connections.close,
  };
}
