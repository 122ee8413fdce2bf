import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenOnLoopback } from "../../src/util/node-http.ts";
import { createMessageReader, sqlOf } from "./postgres-wire.ts";

/** A statement on its way from a client to the server. */
export type ProxiedStatement = {
  /** Counts the statements on all connections, from 1. */
  number: number;
  sql: string;
};

/**
 * The fate of a statement:
 * - `pass`: the server gets it;
 * - `cut`: its connection is cut, and the server never gets it;
 * - `cut after`: the server runs it, and the connection is cut before the answer arrives;
 * - `hold`: the client's connection is cut, and the server gets the statement only when `release` is called;
 * - `swallow`: it is lost and the connection stays open, as in a network that drops packets.
 */
export type Fate = "pass" | "cut" | "cut after" | "hold" | "swallow";

export type PostgresProxy = {
  /** The URL of a database through the proxy. */
  url: string;
  /** The round trips so far: how often a client waited for the server. Statements that are sent together count as one. */
  roundTrips(): number;
  /** The number of open connections with a swallowed statement. */
  silent(): number;
  /** Sends the held statement to the server, and closes that connection after the answer. */
  release(): void;
  close(): Promise<void>;
};

/** A proxy between clients and a Postgres server; a test decides the fate of each statement. */
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
    /** How many ReadyForQuery messages are expected (one each for the start, queries and syncs), and how many arrived. */
    let asked = 0;
    let ready = 0;
    /** The ReadyForQuery message at which to cut the connection; answers to earlier statements of a batch may pass first. */
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
        // The answer to a parsed statement is complete only with the next sync.
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
