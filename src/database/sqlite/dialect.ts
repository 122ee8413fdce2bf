import type { DatabaseSync } from "node:sqlite";
import {
  type DatabaseConnection,
  type Dialect,
  type Driver,
  SelectQueryNode,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { createSqliteSession, type SqliteSession, type SqliteUnit } from "./session.ts";

/** A connection as Kysely sees it: a handle on the one session, with the transaction it is in, if any. */
type Connection = DatabaseConnection & { unit: SqliteUnit | null };

/** Kysely's dialect for `node:sqlite`. It owns the database: destroying the Kysely instance closes it. */
export function createSqliteDialect(database: DatabaseSync): Dialect {
  return {
    createDriver: () => createSqliteDriver(createSqliteSession(database)),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createAdapter: () => ({
      // The session queues its users itself, fairly; Kysely's own lock wakes every waiter for each turn.
      supportsMultipleConnections: true,
      supportsCreateIfNotExists: true,
      supportsTransactionalDdl: true,
      supportsReturning: true,
      // Migrations run in one transaction, and a transaction holds SQLite's write lock.
      acquireMigrationLock: async () => {},
      releaseMigrationLock: async () => {},
    }),
  };
}

function createSqliteDriver(session: SqliteSession): Driver {
  const connections = new WeakMap<DatabaseConnection, Connection>();

  function createConnection(): Connection {
    const connection: Connection = {
      unit: null,
      async executeQuery<R>({ sql, parameters, query }: Parameters<DatabaseConnection["executeQuery"]>[0]) {
        const { rows, changes } =
          connection.unit === null
            ? await session.run(sql, parameters, SelectQueryNode.is(query))
            : connection.unit.run(sql, parameters);
        // Kysely's contract: the rows have the shape of the query's type, which the schema types vouch for.
        return { rows: rows as R[], ...(changes === undefined ? {} : { numAffectedRows: changes }) };
      },
      // biome-ignore lint/correctness/useYield: it only ever throws
      async *streamQuery() {
        throw new Error("Streaming is not supported: it would keep everybody else from the database");
      },
    };
    connections.set(connection, connection);
    return connection;
  }

  function own(connection: DatabaseConnection): Connection {
    const known = connections.get(connection);
    if (known === undefined) throw new Error("This connection is of another driver");
    return known;
  }

  return {
    init: async () => {},
    acquireConnection: async () => createConnection(),
    releaseConnection: async () => {},
    // Isolation level and access mode are not looked at: units run one at a time.
    async beginTransaction(connection) {
      own(connection).unit = await session.begin();
    },
    async commitTransaction(connection) {
      const owner = own(connection);
      try {
        await owner.unit?.commit();
      } finally {
        owner.unit = null;
      }
    },
    async rollbackTransaction(connection) {
      const owner = own(connection);
      try {
        owner.unit?.rollback();
      } finally {
        owner.unit = null;
      }
    },
    destroy: () => session.close(),
  };
}
