import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenOnLoopback } from "../../src/util/node-http.ts";
import {
  createMessageReader,
  readStartup,
  sqlOf,
  type WireMessage,
  writeMessage,
  writeStartup,
  zeroTerminated,
} from "./postgres-wire.ts";

export type TransactionPooler = {
  url: string;
  /** The number of transactions on each connection to the server. */
  transactions(): readonly number[];
  /** Statements that such a pooler does not allow, or that would leak into other sessions. */
  complaints(): readonly string[];
  /** Ends all connections, to clients and to the server, as a restart does. */
  cut(): void;
  close(): Promise<void>;
};

/** Startup parameters that PgBouncer knows; it refuses clients that send others. */
const knownParameters = ["user", "database", "client_encoding", "application_name"];

/** Statements whose effect outlives the transaction, so that the next client would see it. */
const sessionStatements =
  /^\s*(set\s+(?!local|transaction)|prepare|listen|declare\b.*\bhold|discard|load)|pg_(try_)?advisory_lock/i;

type ServerConnection = {
  socket: Socket;
  transactions: number;
  /** The client that uses this connection for a transaction. */
  client: Socket | undefined;
  /** Called with the server's messages while a client uses this connection. */
  onMessage: ((message: WireMessage) => void) | undefined;
};

/**
 * A connection pooler like PgBouncer in transaction mode: many clients share a few connections, and each transaction
 * gets a random one. It resets nothing between transactions. If a client's or a server's connection breaks in a
 * transaction, the other one ends too; the next transaction opens another connection to the server.
 */
export async function startTransactionPooler(target: string, size: number): Promise<TransactionPooler> {
  const all = new Set<ServerConnection>();
  let free: ServerConnection[] = [];
  const waiting: PromiseWithResolvers<ServerConnection>[] = [];
  const complaints: string[] = [];
  const clients = new Set<Socket>();
  let opening = 0;

  const giveBack = (server: ServerConnection) => {
    server.onMessage = undefined;
    server.client = undefined;
    const next = waiting.shift();
    if (next !== undefined) next.resolve(server);
    else free.push(server);
  };
  const open = async (): Promise<ServerConnection> => {
    opening++;
    try {
      const server = await openServerConnection(target);
      all.add(server);
      server.socket.on("close", () => {
        all.delete(server);
        free = free.filter((other) => other !== server);
        server.client?.destroy();
        const next = waiting.shift();
        if (next !== undefined) open().then(next.resolve, next.reject);
      });
      return server;
    } finally {
      opening--;
    }
  };
  const takeAny = async (): Promise<ServerConnection> => {
    const [server] = free.splice(Math.floor(Math.random() * free.length), 1);
    if (server !== undefined) return server;
    if (all.size + opening < size) return open();
    const next = Promise.withResolvers<ServerConnection>();
    waiting.push(next);
    return next.promise;
  };
  free.push(...(await Promise.all(Array.from({ length: size }, open))));

  const pooler = createServer((client) => {
    clients.add(client);
    client.setNoDelay(true);
    client.on("error", () => {});
    const read = createMessageReader({ startsUntyped: true });
    let server: Promise<ServerConnection> | undefined;
    client.on("close", () => {
      clients.delete(client);
      // Ends the transaction that the client left open.
      server?.then(({ socket }) => socket.destroy()).catch(() => {});
    });

    const forward = async (message: WireMessage) => {
      const statement = sqlOf(message);
      if (statement !== null && statement.name !== "") complaints.push(`a named statement: ${statement.sql}`);
      for (const sql of statement?.sql.split(";") ?? []) {
        if (sessionStatements.test(sql)) complaints.push(`kept in the session: ${sql.trim()}`);
      }
      server ??= takeAny();
      const connection = await server;
      connection.client = client;
      connection.onMessage = (answer) => {
        client.write(answer.bytes);
        // ReadyForQuery with status idle: the transaction is over.
        if (answer.type === "Z" && answer.body.toString("latin1") === "I") {
          connection.transactions++;
          server = undefined;
          giveBack(connection);
        }
      };
      connection.socket.write(message.bytes);
    };

    let order = Promise.resolve();
    client.on("data", (chunk) => {
      for (const message of read(chunk)) {
        if (message.type === "X") {
          client.end();
        } else if (message.type !== "") {
          order = order.then(() => forward(message)).catch(() => void client.destroy());
        } else {
          for (const name of Object.keys(readStartup(message) ?? {})) {
            if (!knownParameters.includes(name)) complaints.push(`unsupported startup parameter: ${name}`);
          }
          client.write(writeMessage("R", Buffer.alloc(4)));
          client.write(writeMessage("Z", Buffer.from("I")));
        }
      }
    });
  });
  const url = new URL(target);
  url.port = String(await listenOnLoopback(pooler));

  return {
    url: url.href,
    transactions: () => [...all].map(({ transactions }) => transactions),
    complaints: () => complaints,
    cut() {
      for (const { socket } of all) socket.destroy();
      for (const client of clients) client.destroy();
    },
    async close() {
      pooler.close();
      for (const client of clients) client.destroy();
      for (const { socket } of all) socket.end(writeMessage("X", Buffer.alloc(0)));
      await once(pooler, "close");
    },
  };
}

async function openServerConnection(target: string): Promise<ServerConnection> {
  const { hostname, port, username, password, pathname } = new URL(target);
  const socket = connect(Number(port), hostname);
  socket.setNoDelay(true);
  socket.on("error", () => {});
  const connection: ServerConnection = { socket, transactions: 0, client: undefined, onMessage: undefined };
  const read = createMessageReader({ startsUntyped: false });
  const ready = new Promise<void>((resolve, reject) => {
    socket.on("close", () => reject(new Error("the server has ended the connection")));
    socket.on("data", (chunk) => {
      for (const message of read(chunk)) {
        if (connection.onMessage !== undefined) {
          connection.onMessage(message);
        } else if (message.type === "R" && message.body.readInt32BE(0) === 3) {
          socket.write(writeMessage("p", zeroTerminated(decodeURIComponent(password))));
        } else if (message.type === "Z") {
          resolve();
        } else if (message.type === "E") {
          reject(new Error(message.body.toString("utf8")));
        }
      }
    });
  });
  socket.on("connect", () => {
    socket.write(writeStartup({ user: username, database: pathname.slice(1), client_encoding: "UTF8" }));
  });
  await ready;
  return connection;
}
