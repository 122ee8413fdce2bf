import type { Database } from "../../database/database.ts";
import { pendingMigrations } from "../../database/migrate.ts";
import { openDatabase } from "../../database/open-database.ts";
import { isMissingFile } from "../../database/sqlite/missing-file.ts";
import { explainFailure } from "../../deploy/explain-failure.ts";
import type { Check } from "../../inspection/check.ts";

/** How a database stands: `ready` for this version, `behind` it, not there, or not to be read for some reason. */
export type DatabaseState =
  | { kind: "ready"; db: Database }
  | { kind: "behind"; pending: readonly string[] }
  | { kind: "missing" }
  | { kind: "unreadable"; reason: string };

/** Opens a database as it is, and changes nothing; whoever gets it closes it. */
export async function openAsIs(url: string): Promise<DatabaseState> {
  if (isMissingFile(url)) return { kind: "missing" };
  let db: Database | undefined;
  try {
    db = await openDatabase({ url });
    const pending = await pendingMigrations(db);
    if (pending.length === 0) return { kind: "ready", db };
    await db.destroy();
    return { kind: "behind", pending: pending.map(({ name }) => name) };
  } catch (error) {
    await db?.destroy();
    return { kind: "unreadable", reason: explainFailure(error) };
  }
}

/** What a person should do before the database can be used. */
export const migrationAdvice = "Run x402-kit migrate, or start with x402-kit serve --migrate.";

/** The state of the database, as a line of `doctor`. Its URL is not shown: it may hold a password. */
export function describeDatabase(url: string, state: DatabaseState): Check {
  const what = url.startsWith("sqlite:") ? `SQLite, ${url.slice("sqlite:".length)}` : "Postgres";
  switch (state.kind) {
    case "ready":
      return { name: "database", status: "ok", detail: `${what}: up to date` };
    case "behind": {
      const detail = `${what}: behind this version by ${state.pending.join(", ")}`;
      return { name: "database", status: "failed", detail, advice: migrationAdvice };
    }
    case "missing":
      return {
        name: "database",
        status: "failed",
        detail: `${what}: does not exist yet`,
        advice: migrationAdvice,
      };
    case "unreadable": {
      const advice = "Check DATABASE_URL, and that this machine and user may use it.";
      return { name: "database", status: "failed", detail: state.reason, advice };
    }
  }
}
