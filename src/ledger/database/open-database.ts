import { ConfigurationError } from "../../util/errors.ts";
import type { Database } from "./database.ts";

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
  // Each loaded when it is used: `pg` is of no use to a file.
  if (url.startsWith("sqlite:")) return (await import("./sqlite/open-sqlite.ts")).openSqlite(url);
  if (/^postgres(ql)?:\/\//.test(url)) return (await import("./postgres/open-postgres.ts")).openPostgres(url);
  throw new ConfigurationError([
    {
      name: "DATABASE_URL",
      problem: "must begin with sqlite: or postgres://",
      example: "sqlite:./facilitator.db",
    },
  ]);
}
