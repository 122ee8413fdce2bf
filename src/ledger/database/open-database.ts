import { ConfigurationError } from "../../util/errors.ts";
import type { Database } from "./database.ts";
import { migrate } from "./migrate.ts";
import { openPostgres } from "./postgres/open-postgres.ts";
import { openSqlite } from "./sqlite/open-sqlite.ts";

/**
 * Opens the database that `DATABASE_URL` names, and does not migrate it:
 * - `sqlite:PATH`, where the file is created when it does not exist and a relative path starts from the working
 *   directory, or `sqlite::memory:`;
 * - `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with the parameters that `pg` knows (`?sslmode=verify-full`).
 *
 * @throws ConfigurationError when the URL is of another form. It is never repeated: it may hold a password.
 * @throws KitError when the database cannot be opened or reached.
 */
export async function openDatabase({ url }: { url: string }): Promise<Database> {
  if (url.startsWith("sqlite:")) return openSqlite(url);
  if (/^postgres(ql)?:\/\//.test(url)) return openPostgres(url);
  throw new ConfigurationError([
    {
      name: "DATABASE_URL",
      problem: "must begin with sqlite: or postgres://",
      example: "sqlite:./facilitator.db",
    },
  ]);
}

/**
 * Opens a database and brings it to the newest schema; see {@link openDatabase} for the URL.
 *
 * @throws ConfigurationError or KitError as `openDatabase` and `migrate` do; the database is closed then
 */
export async function openMigrated(url: string): Promise<Database> {
  const database = await openDatabase({ url });
  try {
    await migrate(database);
    return database;
  } catch (error) {
    await database.destroy();
    throw error;
  }
}
