import type { DatabaseSync } from "node:sqlite";
// Imported, not global: a test that installs fake timers must not stop its database.
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

/** Even after a long wait for its turn, a user waits so long for another process that has the lock, in milliseconds. */
const leastLockTimeoutMs = 100;

/**
 * Kysely's dialect for SQLite over `node:sqlite`. It owns `file`, the connection that does all writing: those who write take
 * turns, in the order of asking. `openReader` opens connections that only read, which wait for no writer: in write-ahead mode
 * they see what was committed last. Without it, as for a database in memory, reads take turns with the writing.
 *
 * Isolation levels are not looked at: transactions that write run one at a time. Another process, or another connection of
 * this one, is waited for up to `lockTimeoutMs` where it has the write lock.
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

/** Kysely's lock for a single connection wakes every waiter at each turn; and a read need not wait for a writer. */
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

/** SQLite has one writer at a time: where others lock rows, it has nothing to lock, and no words for it. */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitSelectModifier(node: SelectModifierNode): void {
    if (!locking.has(node.modifier)) super.visitSelectModifier(node);
  }
}

/**
 * Kysely's driver, with turns for those who write, and other connections for those who read. What Kysely takes for a
 * connection takes one of the file's with each statement, or for a transaction.
 */
function createDriver(connections: Connections, lockTimeoutMs: number): Driver {
  const transactions = new Map<DatabaseConnection, Connection>();
  const users = countUsers();

  /** Counted from the asking: otherwise each in a long queue would wait the whole time, one after the other. */
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
    // SQLite may have undone it by itself, as on a full disk: this statement would then be committed alone.
    if (!connection.file.isTransaction) throw new KitError("The transaction has ended");
    // Who writes has the lock.
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
        // A deferred transaction that reads before it writes would fail beside another writer.
        const begin = CompiledQuery.raw(readsOnly ? "begin" : "begin immediate");
        await whileLocked(deadline(askedAt), () => connection.execute(begin));
      } catch (error) {
        connections.giveBack(connection);
        throw error;
      }
      transactions.set(handle, connection);
    },
    // Where it throws, Kysely rolls back what is still open.
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

/** Connections for reading that are kept open; each snapshot that is being read at the same time needs its own. */
const keptReaders = 4;
/** Those who write take turns for so long, in milliseconds, before everything else in this process has one. */
const longestRoundMs = 5;

/** One of the connections to a file, and how Kysely runs a statement on it. */
type Connection = {
  file: DatabaseSync;
  readsOnly: boolean;
  execute(query: CompiledQuery): QueryResult<unknown>;
};

/** The connections to one file: the one that writes, which has one user at a time, and some that read. */
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

  /** The user that ends hands the turn over, so that none can jump the queue. */
  function endTurn(): void {
    const next = waiting.shift();
    if (next === undefined) {
      isTaken = false;
    } else if (performance.now() - roundBegan > longestRoundMs) {
      // A long queue would otherwise keep the event loop, and other processes, out for as long as it lasts.
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
