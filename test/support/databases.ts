import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, inject } from "vitest";
import type { Database } from "../../src/ledger/database/database.ts";
import { migrate, openDatabase } from "../../src/ledger/database/open-database.ts";
import { makeDatabaseFolder } from "./database-folder.ts";
import { type PostgresServer, startPostgres, usePostgres } from "./postgres.ts";

/** A kind of database that all code must support. */
export type Backend = {
  name: "SQLite" | "Postgres";
  /** A part of the error for a duplicate row. */
  duplicate: string;
  /** A part of the error for a row with a missing foreign key. */
  orphan: string;
  /** Prepares for the tests in a file. */
  prepare(): Promise<Prepared>;
};

type Prepared = {
  /** The URL of a database without tables. */
  createEmpty(): Promise<string>;
  /** The URL of a database with all tables, which are empty. */
  createMigrated(): Promise<string>;
  end(): Promise<void>;
};

/** The supported kinds of databases: `describe.each(backends)("on $name", …)`. */
export const backends: readonly Backend[] = [
  {
    name: "SQLite",
    duplicate: "UNIQUE constraint failed",
    orphan: "FOREIGN KEY constraint failed",
    async prepare() {
      const folder = makeDatabaseFolder();
      const template = join(folder, "template.db");
      await migrateNew(`sqlite:${template}`);
      let created = 0;
      const nextFile = () => join(folder, `${++created}.db`);
      return {
        createEmpty: async () => `sqlite:${nextFile()}`,
        async createMigrated() {
          const file = nextFile();
          copyFileSync(template, file);
          return `sqlite:${file}`;
        },
        end: async () => rmSync(folder, { recursive: true }),
      };
    },
  },
  {
    name: "Postgres",
    duplicate: "duplicate key value violates unique constraint",
    orphan: "violates foreign key constraint",
    async prepare() {
      const server = await sharedPostgres();
      let migrated: string | undefined;
      return {
        createEmpty: server.createDatabase,
        async createMigrated() {
          if (migrated !== undefined) {
            await emptyTables(server, migrated);
            return migrated;
          }
          migrated = await server.createDatabase();
          await migrateNew(migrated);
          return migrated;
        },
        end: async () => {},
      };
    },
  },
];

async function migrateNew(url: string): Promise<void> {
  const db = await openDatabase({ url });
  await migrate(db);
  await db.destroy();
}

/** Takes a tenth of the time of creating another database. */
async function emptyTables(server: PostgresServer, url: string): Promise<void> {
  const [row] = await server.query(
    url,
    "select string_agg(relname, ', ') as tables from pg_stat_user_tables where relname not like 'kysely%'",
  );
  await server.query(url, `truncate ${row?.tables}`);
}

let server: Promise<PostgresServer> | undefined;

/** The server of the whole test run if there is one, otherwise one that ends with the test file. */
export function sharedPostgres(): Promise<PostgresServer> {
  server ??= connectOrStart();
  return server;
}
async function connectOrStart(): Promise<PostgresServer> {
  const running = inject("postgres");
  if (running === undefined) return startPostgres();
  if ("error" in running) throw new Error(running.error);
  return usePostgres(running.pid, running.port);
}

/** Closes what {@link sharedPostgres} opened. A server that failed to start was reported by the tests that need it. */
export async function leaveSharedPostgres(): Promise<void> {
  const used = server;
  server = undefined;
  await (await used?.catch(() => undefined))?.stop();
}

/** The database of the running test. */
export type TestDatabase = {
  readonly url: string;
  /** Opens the database; a second call acts like another process. Closed after the test. */
  open(): Promise<Database>;
  /** Closes all connections and restores the state at the beginning of the test. */
  clear(): Promise<void>;
};

/** Gives every test in the surrounding `describe` an empty database: migrated, or without tables. */
export function useTestDatabase(backend: Backend, { migrated = true } = {}): TestDatabase {
  let prepared: Prepared;
  let url = "";
  let opened: Database[] = [];

  beforeAll(async () => {
    prepared = await backend.prepare();
  });
  const create = async () => {
    url = migrated ? await prepared.createMigrated() : await prepared.createEmpty();
  };
  const close = async () => {
    await Promise.all(opened.map((db) => db.destroy()));
    opened = [];
  };
  beforeEach(create);
  afterEach(close);
  afterAll(() => prepared.end());

  return {
    get url() {
      return url;
    },
    async open() {
      const db = await openDatabase({ url });
      opened.push(db);
      return db;
    },
    async clear() {
      await close();
      await create();
    },
  };
}
