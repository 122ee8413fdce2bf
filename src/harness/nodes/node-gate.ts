import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, createServer } from "node:net";
import type { Duplex } from "node:stream";
import { describeRefusal, foreign, type Listening } from "../../service/http/local-server.ts";
import { KitError } from "../../util/errors.ts";
import { http } from "../../util/node-http.ts";
import { relay } from "./relay.ts";

/** This machine alone, or every address that it has, by IPv4 or both. */
export type GateHost = "127.0.0.1" | "0.0.0.0" | "::";

/** Where users reach a node. */
export type NodeGate = {
  readonly url: string;
  /** Lets requests through to the node. Connections that come before are broken. */
  open(nodeUrl: string): void;
  /** Ends it, and every connection through it. Can be called again. */
  close(): Promise<void>;
};

export type NodeGateOptions = {
  /** What messages call the node: `base`. */
  name: string;
  host: GateHost;
  /** Names besides `localhost` that callers may use for it. */
  allowHosts?: readonly string[] | undefined;
  /** Any free one by default. */
  port?: number | undefined;
};

/**
 * Stands between a node and its users, WebSockets included, because a node answers everybody: it refuses web pages of other
 * sites, and other names than this machine's, which pages get there by DNS rebinding. The service does not go through it.
 *
 * @throws {KitError} when it cannot listen there
 */
export async function startNodeGate({
  name,
  host,
  allowHosts,
  port = 0,
}: NodeGateOptions): Promise<NodeGate> {
  const listening = { host, allowHosts };
  const agent = new http.Agent({ keepAlive: true, scheduling: "lifo" });
  const sockets = new Set<Duplex>();
  let node: { host: string; port: number } | undefined;

  const track = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    return socket.once("close", () => sockets.delete(socket));
  };

  /** For what may be a browser's. */
  const checking = http.createServer((incoming, outgoing) => {
    const { origin } = incoming.headers;
    const problem = problemOf(incoming.headers, listening);
    if (problem !== undefined) {
      outgoing.writeHead(403, { "content-type": "application/json" });
      outgoing.end(JSON.stringify(describeRefusal(problem, listening)));
      return;
    }
    if (origin !== undefined) allow(outgoing, origin);
    if (incoming.method === "OPTIONS") outgoing.writeHead(204).end();
    else forward(incoming, outgoing);
  });
  // A connection that is ended because it was idle would look like a fault.
  checking.keepAliveTimeout = 0;

  function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method, url: path, headers } = incoming;
    const sent = http.request({ ...node, method, path, headers, agent }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on("error", () => outgoing.destroy()).pipe(outgoing);
    });
    // A node that is gone looks as it would without a gate.
    sent.on("error", () => outgoing.destroy());
    outgoing.on("close", () => sent.destroy());
    incoming.pipe(sent);
  }

  checking.on("upgrade", (incoming: IncomingMessage, client: Duplex, first: Buffer) => {
    client.on("error", () => client.destroy());
    if (node === undefined || problemOf(incoming.headers, listening) !== undefined) {
      client.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const upstream = track(connect({ ...node, noDelay: true }));
    upstream.on("error", () => upstream.destroy()).once("close", () => client.destroy());
    client.once("close", () => upstream.destroy());
    upstream.write(headOf(incoming), "latin1");
    upstream.write(first);
    client.pipe(upstream).pipe(client);
  });

  const server = createServer((client) => {
    track(client);
    if (node === undefined) {
      client.destroy();
      return;
    }
    relay({
      ...{ client, node },
      wanted: (request) => !isOfProgram(request, listening),
      handOver(socket) {
        checking.emit("connection", socket);
        socket.resume();
      },
    });
  });
  server.listen({ host, port });
  await once(server, "listening").catch((cause: unknown) => {
    const isTaken = cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE";
    throw new KitError(`The ${name} node cannot listen on port ${port}${isTaken ? ": it is in use" : ""}`, {
      cause,
      hints: [
        "Choose another by --rpc-port or --rpc-ports (in a program, by the option rpcPorts), or none: a free one is found then.",
      ],
    });
  });
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${taken}`,
    open(nodeUrl) {
      const { hostname, port } = new URL(nodeUrl);
      node = { host: hostname, port: Number(port) };
    },
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await closed;
    },
  };
}

/**
 * Whether a request is certainly no page's, so that its connection needs to be read no further: browsers write the `Origin`
 * of every POST, so none of their connections begins like this. Reading all of it would double what a call takes.
 */
function isOfProgram(request: Buffer, listening: Listening): boolean {
  const end = request.indexOf("\r\n\r\n");
  const head = request.toString("latin1", 0, Math.max(end, 0)).toLowerCase();
  if (!head.startsWith("post ") || head.includes("\norigin")) return false;
  const host = /\nhost:[ \t]*(\S+)/.exec(head)?.[1];
  return foreign({ host }, listening) === undefined;
}

/** What gives a request away as another site's. A wallet in a browser is an extension, whose origin no page can have. */
function problemOf(
  { host, origin }: { host?: string | undefined; origin?: string | undefined },
  listening: Listening,
): string | undefined {
  const isExtension = origin !== undefined && /^[a-z-]+-extension:\/\/[\w-]+$/.test(origin);
  return foreign({ host, origin: isExtension ? undefined : origin }, listening);
}

/** Lets a page read the answer, and send JSON. */
function allow(outgoing: ServerResponse, origin: string): void {
  outgoing.setHeader("access-control-allow-origin", origin);
  outgoing.setHeader("access-control-allow-methods", "POST");
  outgoing.setHeader("access-control-allow-headers", "content-type");
  outgoing.setHeader("vary", "origin");
}

/** The beginning of a request as it came. */
function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
  );
  return [`${method} ${url} HTTP/1.1`, ...lines, "", ""].join("\r\n");
}
