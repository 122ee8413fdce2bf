import type { DatabaseSync } from "node:sqlite";
// Imported, not global, so that a test with fake timers does not stop its database.
import { setImmediate } from "node:timers";
import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  type SelectModifierNode,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { KitError } from "../../../util/errors.ts";
import { countUsers } from "../database.ts";
import { createQueryRunner, whileLocked } from "./node-sqlite.ts";

/** The minimum time to wait for another process's lock, even after a long wait in the queue, in milliseconds. */
const leastLockTimeoutMs = 100;

/**
 * Kysely's dialect for SQLite over `node:sqlite`. It owns `file`, the connection for all writes, which are queued
 * first come, first served. `openReader` opens read-only connections that wait for no writer: in write-ahead mode they
 * see the last commit. Without it, as for a database in memory, reads join the queue of writes.
 *
 * Isolation levels are ignored: transactions that write run one at a time. If another connection, of this process or
 * another one, holds the write lock, it waits up to `lockTimeoutMs`.
 */
export function createSqliteDialect(
  file: DatabaseSync,
  { openReader, lockTimeoutMs = 10_000 }: { openReader?: () => DatabaseSync; lockTimeoutMs?: number } = {},
): Dialect {
  return {
    createDriver: () => createDriver(createConnections(file, openReader), lockTimeoutMs),
    createQueryCompiler: () => new QueryCompiler(),
    createAdapter: () => new Adapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
  };
}

/** Disables Kysely's own lock, which wakes every waiter on each release and makes reads wait for writes. */
class Adapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

const locking: ReadonlySet<SelectModifierNode["modifier"]> = new Set([
  "ForUpdate",
  "ForKeyShare",
  "SkipLocked",
]);

/** Drops row locks: SQLite has a single writer, and no syntax for them. */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (!locking.has(node.modifier)) super.visitSelectModifier(node);
  }
}

/**
 * Kysely's driver, with a queue for writes and separate connections for reads. Kysely's connections are only handles:
 * each takes a real connection for one statement or one transaction.
 */
function createDriver(connections: Connections, lockTimeoutMs: number): Driver {
  const transactions = new Map<DatabaseConnection, Connection>();
  const users = countUsers();

  /** Counted from the request; otherwise each user in a long queue would wait the full time, one after the other. */
  const deadline = (askedAt: number) =>
    Math.max(askedAt + lockTimeoutMs, performance.now() + leastLockTimeoutMs);

  async function runAlone(query: CompiledQuery): Promise<QueryResult<unknown>> {
    const askedAt = performance.now();
    const connection = await connections.take(SelectQueryNode.is(query.query));
    try {
      return await whileLocked(deadline(askedAt), () => connection.execute(query));
    } finally {
      connections.giveBack(connection);
    }
  }

  function runInside(
    connection: Connection,
    query: CompiledQuery,
  ): QueryResult<unknown> | Promise<QueryResult<unknown>> {
    // SQLite may have rolled back by itself, as on a full disk; this statement would then commit alone.
    if (!connection.file.isTransaction) throw new KitError("The transaction has ended");
    // A writing transaction holds the lock already.
    if (!connection.readsOnly) return connection.execute(query);
    return whileLocked(deadline(performance.now()), () => connection.execute(query));
  }

  function end(handle: DatabaseConnection, connection: Connection): void {
    transactions.delete(handle);
    connections.giveBack(connection);
  }

  return {
    init: async () => {},
    async acquireConnection() {
      users.enter();
      const handle: DatabaseConnection = {
        async executeQuery<R>(query: CompiledQuery) {
          const connection = transactions.get(handle);
          const result = connection === undefined ? runAlone(query) : runInside(connection, query);
          // Kysely's contract: the rows have the shape of the query's type, which the schema types vouch for.
          return (await result) as QueryResult<R>;
        },
        // biome-ignore lint/correctness/useYield: it only ever throws
        async *streamQuery() {
          throw new Error(
            "Streaming is not supported: it would occupy a connection for as long as it is read",
          );
        },
      };
      return handle;
    },
    releaseConnection: async () => users.leave(),

    async beginTransaction(handle, { accessMode }) {
      const readsOnly = accessMode === "read only";
      const askedAt = performance.now();
      const connection = await connections.take(readsOnly);
      try {
        // A deferred transaction that reads before it writes would fail if there is another writer.
        const begin = CompiledQuery.raw(readsOnly ? "begin" : "begin immediate");
        await whileLocked(deadline(askedAt), () => connection.execute(begin));
      } catch (error) {
        connections.giveBack(connection);
        throw error;
      }
      transactions.set(handle, connection);
    },
    // If it throws, Kysely rolls back what is still open.
    async commitTransaction(handle) {
      const connection = transactions.get(handle);
      if (connection === undefined) return;
      connection.execute(CompiledQuery.raw("commit"));
      end(handle, connection);
    },
    async rollbackTransaction(handle) {
      const connection = transactions.get(handle);
      if (connection === undefined) return;
      try {
        if (connection.file.isTransaction) connection.execute(CompiledQuery.raw("rollback"));
      } finally {
        end(handle, connection);
      }
    },

    async destroy() {
      await users.gone();
      await connections.close();
    },
  };
}

/** The number of idle readers kept open; each concurrent snapshot needs its own. */
const keptReaders = 4;
/** How long queued writes may run in one go before the event loop gets a turn, in milliseconds. */
const longestRoundMs = 5;

/** One of the connections to a file, and the function that runs Kysely's statements on it. */
type Connection = {
  file: DatabaseSync;
  readsOnly: boolean;
  execute(query: CompiledQuery): QueryResult<unknown>;
};

/** The connections to one file: the writer, which has one user at a time, and some readers. */
type Connections = {
  take(readsOnly: boolean): Promise<Connection>;
  giveBack(connection: Connection): void;
  close(): Promise<void>;
};

function createConnections(file: DatabaseSync, openReader: (() => DatabaseSync) | undefined): Connections {
  const writer = connect(file, { readsOnly: false });
  const idleReaders: Connection[] = [];
  const waiting: (() => void)[] = [];
  let isTaken = false;
  let roundBegan = 0;

  /** Hands the writer directly to the next in the queue, so that nobody can jump it. */
  function endTurn(): void {
    const next = waiting.shift();
    if (next === undefined) {
      isTaken = false;
    } else if (performance.now() - roundBegan > longestRoundMs) {
      // A long queue would otherwise block the event loop, and other processes, until it is empty.
      setImmediate(() => {
        roundBegan = performance.now();
        next();
      });
    } else {
      next();
    }
  }

  return {
    async take(readsOnly) {
      if (readsOnly && openReader !== undefined) {
        return idleReaders.pop() ?? connect(openReader(), { readsOnly });
      }
      if (isTaken) await new Promise<void>((resolve) => waiting.push(resolve));
      else roundBegan = performance.now();
      isTaken = true;
      return writer;
    },
    giveBack(connection) {
      if (!connection.readsOnly) endTurn();
      else if (idleReaders.length < keptReaders) idleReaders.push(connection);
      else connection.file.close();
    },
    async close() {
      for (const reader of idleReaders.splice(0)) reader.file.close();
      file.close();
    },
  };
}

function connect(file: DatabaseSync, { readsOnly }: { readsOnly: boolean }): Connection {
  return { file, readsOnly, execute: createQueryRunner(file) };
}
