import type { Pool } from "pg";
import { ConfigurationError, KitError } from "../../../util/errors.ts";
import { isLoopbackHost } from "../../../util/loopback.ts";
import type { Database } from "../database.ts";
import { UndoneError } from "../transactions.ts";
import { openPostgresClock } from "./postgres-clock.ts";
import { createPostgresConnections, type PostgresConnections } from "./postgres-connection.ts";

/** The maximum number of connections per process, besides the urgent one. Every claim that is being signed holds one. */
const mostConnections = 10;
/** How long opening a connection may take, in milliseconds. */
const connectTimeoutMs = 10_000;
/** One more for urgent statements, which are short, rare and sequential. Its timeout is shorter, to reconnect sooner. */
const urgentConnections = { max: 1, connectionTimeoutMillis: 3_000 };
/** Idle connections are closed after this, in milliseconds. */
const idleMs = 30_000;
/** The maximum lifetime of a connection, so that connections follow a database that has moved. */
const longestLifeSeconds = 30 * 60;

/** Has every feature that is used, and `pg_stat_activity` as a hint describes it. */
const oldestVersion = 14;

/** The OID of 64-bit integers in `pg_type`. */
const int8 = 20;

/**
 * Opens the Postgres database of a URL.
 *
 * @throws ConfigurationError when the URL cannot be read.
 * @throws KitError when the database cannot be reached, is too old, a read-only replica, or forgets commits.
 */
export async function openPostgres(url: string): Promise<Database> {
  // Imported here rather than at the top, because only Postgres needs them.
  const [{ Kysely }, { createPostgresDialect }, { default: pg }] = await Promise.all([
    import("kysely"),
    import("./postgres-dialect.ts"),
    import("pg"),
  ]);
  const options = {
    connectionString: pinSslMode(url),
    application_name: "x402-kit",
    max: mostConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleMs,
    maxLifetimeSeconds: longestLifeSeconds,
    keepAlive: true,
    // Sends statements without waiting for the responses to earlier ones.
    pipeline: true,
    types: {
      getTypeParser: (...[type, format]: Parameters<typeof pg.types.getTypeParser>) =>
        type === int8 ? readInteger : pg.types.getTypeParser(type, format),
    },
  };
  let pools: [usual: Pool, urgent: Pool];
  try {
    // A pool reads its URL with its first connection. This reads it now, while the error can still name the setting.
    new pg.Client(options);
    pools = [new pg.Pool(options), new pg.Pool({ ...options, ...urgentConnections })];
  } catch (error) {
    // Without the cause, which may contain the URL with the password.
    throw new ConfigurationError([
      {
        name: "DATABASE_URL",
        problem: explainUrlError(error),
        example: "postgres://USER:PASSWORD@HOST:5432/DATABASE",
      },
    ]);
  }
  for (const pool of pools) {
    // An idle connection that dies is replaced on the next use.
    pool.on("error", () => {});
    // From the start: an unhandled error event ends the process, and the pool does not always listen.
    pool.on("connect", (client) => client.on("error", () => {}));
  }
  const [connections, urgent] = [createPostgresConnections(pools[0]), createPostgresConnections(pools[1])];
  try {
    await inspect(connections);
    const clock = await openPostgresClock(connections);
    return new Kysely({ dialect: createPostgresDialect(connections, urgent, clock) });
  } catch (error) {
    await connections.close();
    throw error;
  }
}

/** Throws if the server cannot be trusted with the ledger. */
async function inspect(connections: PostgresConnections): Promise<void> {
  const unusable = (reason: string, hint: string) =>
    new KitError(`The database cannot be used: ${reason}`, { hints: [hint] });
  const { version, replica, synchronous } = await readSettings(connections);
  if (version < oldestVersion * 10_000) {
    throw unusable(`it is older than Postgres ${oldestVersion}`, "Upgrade the server.");
  }
  if (replica) {
    throw unusable("it is a read-only replica", "Let DATABASE_URL name the primary server.");
  }
  if (synchronous === "off") {
    throw unusable(
      "it reports commits done that a crash undoes (synchronous_commit is off)",
      "Turn it on for this user or database: alter role … set synchronous_commit = on",
    );
  }
}

async function readSettings(
  connections: PostgresConnections,
): Promise<{ version: number; replica: boolean; synchronous: unknown }> {
  try {
    const connection = await connections.take();
    try {
      const { rows } = await connection.run(
        "select current_setting('server_version_num') as version, pg_is_in_recovery() as replica, current_setting('synchronous_commit') as synchronous",
        [],
        connectTimeoutMs,
      );
      const [row] = rows;
      return {
        version: Number(row?.version),
        replica: row?.replica === true,
        synchronous: row?.synchronous,
      };
    } finally {
      connection.release();
    }
  } catch (error) {
    throw new KitError("The database cannot be reached", {
      cause: reasonOf(error),
      hints: [adviceOn(reasonOf(error))],
    });
  }
}

function adviceOn(reason: unknown): string {
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  if (/CERT|ISSUER|ALTNAME|SELF_SIGNED/.test(code)) {
    return "Its certificate is not trusted: name its authority with &sslrootcert=FILE in DATABASE_URL.";
  }
  if (code === "ENOENT")
    return "There is no such Unix socket: `host` in DATABASE_URL is the folder it is in.";
  return "Check that DATABASE_URL names a running Postgres, and its user, password and database.";
}

/** The error of the network or server, unwrapped from the one for callers that retry. */
function reasonOf(error: unknown): unknown {
  const reason = error instanceof UndoneError ? error.cause : error;
  // A host with several addresses fails with one error for each, in an aggregate without a message.
  return reason instanceof AggregateError && reason.errors.length > 0 ? reason.errors[0] : reason;
}

function readInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`${text} is a larger integer than the ledger stores`);
  return value;
}

/*
 * The options that `pg` reads from a URL, minus two flaws: it prints a long warning about `sslmode`, and reports every
 * parameter it cannot use as a broken URL.
 */

/**
 * Replaces the `sslmode` values prefer, require and verify-ca by verify-full. To `pg` they mean the same today, but it
 * prints a long warning that this will change.
 */
export function pinSslMode(url: string): string {
  if (/[?&]uselibpqcompat=true(?:&|$)/.test(url)) return url;
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, "$1verify-full");
}

/** Explains why `pg` rejected a URL. Its own error may contain the URL with the password. */
function explainUrlError(error: unknown): string {
  // A file named by sslrootcert, sslcert or sslkey.
  if (error instanceof Error && "path" in error && "syscall" in error) {
    return `names a file that cannot be read: ${error.path}`;
  }
  return "cannot be read; characters that mean something in a URL must be percent-encoded";
}

/**
 * Returns the host that a Postgres URL sends passwords and payments to in plain text; null if the connection is
 * encrypted or stays on this machine. Also null for SQLite and for anything that is not a database URL.
 */
export async function findPlainTextHost(url: string): Promise<string | null> {
  if (!/^postgres(?:ql)?:\/\//.test(url)) return null;
  const { default: pg } = await import("pg");
  try {
    const { host, ssl } = new pg.Client({ connectionString: pinSslMode(url) });
    return ssl || isOnThisMachine(host) ? null : host;
  } catch {
    return null;
  }
}

function isOnThisMachine(host: string): boolean {
  // An empty host, or the folder of a Unix socket.
  return host === "" || host.startsWith("/") || isLoopbackHost(host);
}
