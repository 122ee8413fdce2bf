import { userInfo } from "node:os";
import { readDatabaseUrl, readPepper } from "../../config/values.ts";
import { variables } from "../../config/variables.ts";
import type { Database } from "../../database/database.ts";
import { openReady } from "../../inspection/database.ts";
import type { Option } from "../kit/options.ts";

/*
 * What the commands of an operator have in common that work on the database: `org`, `key`, `settlements`.
 */

/** Where the database is; the same as for `serve`. */
export const databaseOption = {
  describe: `the database of \`serve\` (default ${variables.DATABASE_URL.default})`,
  placeholder: "URL",
  env: "DATABASE_URL",
  environmentOnly: true,
  example: variables.DATABASE_URL.example,
  read: (text: string) => readDatabaseUrl(text),
  fallback: variables.DATABASE_URL.default,
} satisfies Option<string>;

/** What API keys are hashed with; the same as for `serve`, or else it knows none of them. */
export const pepperOption = {
  describe: "the secret that API keys are hashed with, as `serve` has it",
  placeholder: "SECRET",
  env: "API_KEY_PEPPER",
  environmentOnly: true,
  example: "what `openssl rand -hex 32` prints",
  read: (text: string) => readPepper(text),
  required: true,
} satisfies Option<string>;

/** Who makes a change, for the audit trail. */
export const actorOption = {
  describe: "who makes this change, for the audit trail (default the user of the operating system)",
  placeholder: "NAME",
  example: "alice",
  read: (text: string): string | undefined => text,
  fallback: undefined,
} satisfies Option<string | undefined>;

/** The name of whoever runs this process, as the operating system has it. */
export function actorOr(given: string | undefined): string {
  if (given !== undefined) return given;
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return `uid ${process.getuid?.() ?? "unknown"}`;
  }
}

/**
 * Opens the database for as long as the work takes.
 *
 * @throws KitError when it is not there, or behind this version, with what to do about it
 */
export async function withDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = await openReady(url);
  try {
    return await work(db);
  } finally {
    await db.destroy();
  }
}
