import { UndeterminedError } from "../../../util/errors.ts";
import { UndoneError } from "../retrying.ts";

/**
 * What an error of `pg` means for the statement that met it:
 *
 * - `lost`: the connection was lost, and whether the server ran the statement is unknown;
 * - `undone`: the server gave the transaction up, because of others, and would take it again;
 * - `late`: it took too long, mostly by waiting for another's lock;
 * - `unwritable`: the server takes no writes;
 * - `refused`: anything else that the server says, a violated constraint for example. It says it again next time.
 */
export type PostgresFailure = "lost" | "undone" | "late" | "unwritable" | "refused";

/** Codes by their SQLSTATE; see "PostgreSQL Error Codes" in its manual. */
const meanings: Readonly<Record<string, PostgresFailure>> = {
  "40001": "undone", // serialization_failure
  "40P01": "undone", // deadlock_detected
  "55P03": "late", // lock_not_available: lock_timeout
  "57014": "late", // query_canceled: statement_timeout
  "25006": "unwritable", // read_only_sql_transaction: a standby, or set so
  "53100": "unwritable", // disk_full
  "58030": "unwritable", // io_error
  "53300": "lost", // too_many_connections
  "57P03": "lost", // cannot_connect_now: it is starting or stopping
};

/** Classifies an error that a query or a connection attempt was rejected with. */
export function classifyPostgresError(error: unknown): PostgresFailure {
  if (!isFromServer(error)) {
    // Values that cannot be written or read are ours; all else that the client reports is about its connection.
    return error instanceof TypeError || error instanceof RangeError ? "refused" : "lost";
  }
  const meaning = meanings[error.code];
  if (meaning !== undefined) return meaning;
  // Class 08: connection exceptions, which a pooler in between reports. 28 and 3D: no such user, password or database.
  if (error.code.startsWith("08")) return "lost";
  if (/^(28|3D)/.test(error.code)) return "refused";
  return error.severity === "FATAL" || error.severity === "PANIC" ? "lost" : "refused";
}

/** The error to throw to the caller, by what it means; as it is where the server refused. */
export function explainPostgresError(error: unknown, failure: Exclude<PostgresFailure, "lost">): unknown {
  switch (failure) {
    case "undone":
      return new UndoneError("The database undid a transaction because of another one", { cause: error });
    case "late":
      return new UndeterminedError("The database took too long", {
        cause: error,
        hints: [
          "Look for a transaction that stays open, in pg_stat_activity, and for a server without power.",
        ],
      });
    case "unwritable":
      return new UndeterminedError("The database takes no writes", {
        cause: error,
        hints: ["Its disk is full or failing, or the server has become a read-only standby."],
      });
    case "refused":
      return error;
  }
}

function isFromServer(error: unknown): error is Error & { code: string; severity: string } {
  return (
    error instanceof Error &&
    "severity" in error &&
    typeof error.severity === "string" &&
    "code" in error &&
    typeof error.code === "string"
  );
}
