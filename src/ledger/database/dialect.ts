import {
  type CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryCompiler,
  SelectQueryNode,
  type TransactionSettings,
} from "kysely";
import { KitError, UndeterminedError } from "../../util/errors.ts";

/** What running one statement gave; `changes` is undefined for one that changes no rows. */
export type StatementResult = {
  rows: Record<string, unknown>[];
  changes: bigint | undefined;
};

/**
 * A transaction under way. It ends with the first `commit` that resolves, or `rollback`. Statements that are run
 * without waiting for one another's answers take place in the order of asking, and so does the commit.
 */
export type EngineTransaction = {
  run(sql: string, parameters: readonly unknown[]): StatementResult | Promise<StatementResult>;
  commit(): Promise<void>;
  /** Does nothing to a transaction that has ended. */
  rollback(): void | Promise<void>;
};

/** A database as both kinds offer it to Kysely. Each deals out its connections itself, in the order of asking. */
export type Engine = {
  /** Runs a statement by itself. `readsOnly` is true for a SELECT alone. */
  run(sql: string, parameters: readonly unknown[], readsOnly: boolean): Promise<StatementResult>;
  /** Runs a statement once, which waits for no others where the database takes several at a time. */
  runUrgently(sql: string, parameters: readonly unknown[]): Promise<StatementResult>;
  begin(settings: TransactionSettings): Promise<EngineTransaction>;
  /** Called once, when nothing is under way. */
  close(): Promise<void>;
};

/**
 * A connection as Kysely sees it: a handle, with the transaction it is in, if any, and those of its statements whose
 * answers only the commit waits for.
 */
type Handle = DatabaseConnection & {
  transaction: EngineTransaction | null;
  unanswered: Promise<unknown>[];
  runUrgently: Engine["runUrgently"];
};

const handles = new WeakMap<DatabaseConnection, Handle>();

/** Kysely's dialect over an {@link Engine}, which it owns: destroying the Kysely instance closes it. */
export function createDialect(options: {
  engine: Engine;
  createQueryCompiler: () => QueryCompiler;
  // biome-ignore lint/suspicious/noExplicitAny: Kysely's own signature
  createIntrospector: (db: Kysely<any>) => DatabaseIntrospector;
}): Dialect {
  const { engine, createQueryCompiler, createIntrospector } = options;
  return {
    createDriver: () => createDriver(engine),
    createQueryCompiler,
    createIntrospector,
    createAdapter: () => ({
      // An engine queues its users fairly; Kysely's own lock for one connection wakes every waiter at each turn.
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

function handleOf(connection: DatabaseConnection): Handle {
  const handle = handles.get(connection);
  if (handle === undefined) throw new Error("This connection is of another driver");
  return handle;
}

/**
 * Sends a statement of a transaction on its way, of which nothing needs the result. Where it fails, the commit does: it
 * follows without having waited for the answer. On a connection of another dialect it is waited for.
 */
export async function runUnanswered(connection: DatabaseConnection, query: CompiledQuery): Promise<void> {
  const handle = handles.get(connection);
  if (handle === undefined) {
    await connection.executeQuery(query);
    return;
  }
  const { transaction, unanswered } = handle;
  if (transaction === null) throw new Error("Only a transaction can wait for it");
  const answer = transaction.run(query.sql, query.parameters);
  if (!(answer instanceof Promise)) return;
  answer.catch(() => {}); // the commit says it
  unanswered.push(answer);
}

/** Runs a statement that cannot wait its turn. What it gives is not told. On another dialect it takes its turn. */
export async function runUrgently(connection: DatabaseConnection, query: CompiledQuery): Promise<void> {
  const handle = handles.get(connection);
  if (handle === undefined) await connection.executeQuery(query);
  else await handle.runUrgently(query.sql, query.parameters);
}

/** Why a transaction was not committed: by the statement that failed, where the engine says no more than that one did. */
async function whyUndone(error: unknown, unanswered: readonly Promise<unknown>[]): Promise<unknown> {
  // The connection was lost, or the database is in trouble. What it kept is known to the commit alone.
  if (error instanceof UndeterminedError) return error;
  const answers = await Promise.allSettled(unanswered);
  return answers.find((answer) => answer.status === "rejected")?.reason ?? error;
}

function createDriver(engine: Engine): Driver {
  let users = 0;
  let closed: PromiseWithResolvers<void> | undefined;

  function createHandle(): Handle {
    const handle: Handle = {
      transaction: null,
      unanswered: [],
      runUrgently: engine.runUrgently,
      async executeQuery<R>({ sql, parameters, query }: Parameters<DatabaseConnection["executeQuery"]>[0]) {
        const { rows, changes } =
          handle.transaction === null
            ? await engine.run(sql, parameters, SelectQueryNode.is(query))
            : await handle.transaction.run(sql, parameters);
        // Kysely's contract: the rows have the shape of the query's type, which the schema types vouch for.
        return { rows: rows as R[], ...(changes === undefined ? {} : { numAffectedRows: changes }) };
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
      if (closed !== undefined) throw new KitError("The database has been closed");
      users++;
      return createHandle();
    },
    async releaseConnection() {
      users--;
      if (users === 0) closed?.resolve();
    },
    async beginTransaction(connection, settings) {
      handleOf(connection).transaction = await engine.begin(settings);
    },
    // Where it throws, Kysely rolls back what is still open.
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
      closed = Promise.withResolvers<void>();
      if (users === 0) closed.resolve();
      await closed.promise;
      await engine.close();
    },
  };
}
