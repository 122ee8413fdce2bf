import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenOnLoopback } from "../../src/util/loopback.ts";
import { createMessageReader, sqlOf } from "./postgres-wire.ts";

/** A statement on its way from a client to the server. */
export type ProxiedStatement = {
  /** Counts the statements of all connections from 1. */
  number: number;
  sql: string;
};

/**
 * What becomes of a statement:
 * - `pass`: it goes on;
 * - `cut`: its connection is cut, and the server never gets it;
 * - `cut after`: the server runs it, and then the connection is cut before the answer has arrived;
 * - `hold`: the client's connection is cut, and the server gets the statement only when `release` is called;
 * - `swallow`: it disappears, and the connection stays: so does a network that drops packets.
 */
export type Fate = "pass" | "cut" | "cut after" | "hold" | "swallow";

export type PostgresProxy = {
  /** The URL of a database by way of the proxy. */
  url: string;
  /** How often so far a client waited for the server before it went on: statements sent in one go count as one. */
  roundTrips(): number;
  /** How many connections are still open of which a statement was swallowed. */
  silent(): number;
  /** Lets the server have what was held, and ends its connection when it has answered. */
  release(): void;
  close(): Promise<void>;
};

/** Stands between clients and a Postgres server, and lets a test decide over every statement. */
export async function startPostgresProxy(
  target: string,
  decide: (statement: ProxiedStatement) => Fate,
): Promise<PostgresProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const silent = new Set<Socket>();
  const held: (() => void)[] = [];
  let statements = 0;
  let roundTrips = 0;

  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname);
    const read = createMessageReader({ startsUntyped: true });
    const readAnswers = createMessageReader({ startsUntyped: false });
    /** What the server will say that it is ready after, and how often it has: beginning, queries and syncs. */
    let asked = 0;
    let ready = 0;
    /** With which of them the connection is cut: answers to what was sent together with it may come before. */
    let cutAt = Number.POSITIVE_INFINITY;
    let cut = false;
    let answered = true;
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.on("close", () => silent.delete(client));
    client.on("close", () => cut || server.destroy());
    server.on("close", () => client.destroy());
    server.on("data", (bytes) => {
      answered = true;
      ready += readAnswers(bytes).filter(({ type }) => type === "Z").length;
      if (ready >= cutAt) {
        client.destroy();
        server.destroy();
      } else if (!client.destroyed) {
        client.write(bytes);
      }
    });
    client.on("data", (chunk) => {
      for (const message of read(chunk)) {
        const statement = sqlOf(message);
        // One that is parsed is answered for good with the sync after it.
        const answeredAt = message.type === "P" ? asked + 1 : asked + Number(/^[QS]?$/.test(message.type));
        if (message.type !== "P") asked = answeredAt;
        if (statement !== null && answered) roundTrips++;
        if (statement !== null) answered = false;
        const fate = statement === null ? "pass" : decide({ number: ++statements, sql: statement.sql });
        switch (fate) {
          case "pass":
            server.write(message.bytes);
            break;
          case "cut after":
            cutAt = answeredAt;
            server.write(message.bytes);
            break;
          case "cut":
            client.destroy();
            return;
          case "hold":
            cut = true;
            cutAt = answeredAt;
            held.push(() => server.write(message.bytes));
            client.destroy();
            return;
          case "swallow":
            silent.add(client);
            client.removeAllListeners("data");
            return;
        }
      }
    });
  });
  const url = new URL(target);
  url.port = String(await listenOnLoopback(proxy));
  return {
    url: url.href,
    roundTrips: () => roundTrips,
    silent: () => silent.size,
    release() {
      for (const write of held.splice(0)) write();
    },
    async close() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
      await once(proxy, "close");
    },
  };
}
