import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { http } from "./node-http.ts";

/** The server that a relay stands in front of. */
export type RelayTarget = { host: string; port: number };

/** The server of a URL, over plain HTTP. */
export function relayTargetOf(url: string): RelayTarget {
  const { hostname, port } = urlToHttpOptions(new URL(url));
  return { host: hostname ?? "", port: Number(port ?? 80) };
}

export type RelayOptions = {
  /** Where connections go that come now; those for which there is nothing are broken. */
  target: () => RelayTarget | undefined;
  /**
   * Asked at the beginning of each request, of which these bytes have come, whether it must be read. All others pass as bytes:
   * a third of what it takes to read and write HTTP. Without it every request is read.
   */
  reads?: (request: Buffer) => boolean;
  /** Answers a request that is read, by {@link HttpRelay.forward} or by itself. */
  answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /** Returns true if a request that asks for another protocol, such as WebSocket, may have it. Without it all are answered. */
  mayUpgrade?: (incoming: IncomingMessage) => boolean;
  /** True if each request that is sent on has a connection of its own, which may be broken with it. */
  ownConnections?: boolean;
};

export type HttpRelay = {
  /** To listen with; the relay does not. */
  readonly server: Server;
  /** Ends it, and every connection through it. Can be called again. */
  close(): Promise<void>;
  /**
   * Sends a request on, as it came unless a body or headers are given; gives the head of the answer. It is given up when the
   * connection of `outgoing` ends.
   */
  forward(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    changes?: { body?: string; headers?: Readonly<Record<string, string>> },
  ): Promise<IncomingMessage>;
};

/** Makes a relay, between HTTP clients and one server. What breaks on one side, breaks on the other. */
export function createHttpRelay({
  target,
  reads,
  answer,
  mayUpgrade,
  ownConnections = false,
}: RelayOptions): HttpRelay {
  const agent = new http.Agent({ keepAlive: !ownConnections, scheduling: "lifo" });
  const sockets = new Set<Duplex>();
  const track = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    return socket.once("close", () => sockets.delete(socket));
  };

  const reading = http.createServer(answer);
  // A connection that is ended because it was idle would look like a fault.
  reading.keepAliveTimeout = 0;
  const upgrade = (incoming: IncomingMessage, client: Duplex, first: Buffer) => {
    client.on("error", () => client.destroy());
    const to = target();
    if (to === undefined || !mayUpgrade?.(incoming)) {
      client.end("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const upstream = track(connect({ ...to, noDelay: true }));
    upstream.on("error", () => upstream.destroy()).once("close", () => client.destroy());
    client.once("close", () => upstream.destroy());
    upstream.write(headOf(incoming), "latin1");
    upstream.write(first);
    client.pipe(upstream).pipe(client);
  };
  // With a listener, Node would take every request for it that offers another protocol beside HTTP.
  if (mayUpgrade !== undefined) reading.on("upgrade", upgrade);

  const server = createServer((client) => {
    track(client);
    const to = target();
    if (to === undefined) client.destroy();
    else if (reads === undefined) reading.emit("connection", client);
    else passBytes(client, to, { reads, handOver: (socket) => reading.emit("connection", socket) });
  });

  return {
    server,
    async close() {
      if (!server.listening) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await promise;
    },
    forward(incoming, outgoing, { body, headers = incoming.headers } = {}) {
      const { method, url: path } = incoming;
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
      const sent = http.request(
        { ...target(), method, path, headers: { ...headers, ...length }, agent },
        resolve,
      );
      sent.on("error", reject);
      outgoing.on("close", () => sent.destroy());
      if (body === undefined) incoming.pipe(sent);
      else sent.end(body);
      return promise;
    },
  };
}

/**
 * Passes the bytes of a connection on and back as they are, until a request begins that is read: then hands it over, with
 * that request unread.
 *
 * Where a request begins follows from HTTP clients not sending the next one before the last is answered: what comes
 * from the client begins one when nothing came before, or when the server has spoken since.
 */
function passBytes(
  client: Socket,
  to: RelayTarget,
  { reads, handOver }: { reads: (request: Buffer) => boolean; handOver: (client: Socket) => void },
): void {
  const upstream = connect({ ...to, noDelay: true });
  let begins = true;
  client.setNoDelay(true);

  const receive = (chunk: Buffer) => {
    if (begins && reads(chunk)) {
      client.off("data", receive).off("drain", resumeUpstream).off("close", endUpstream).off("error", ignore);
      upstream.off("close", endClient).destroy();
      client.pause();
      client.unshift(chunk);
      handOver(client);
      client.resume();
      return;
    }
    begins = false;
    if (!upstream.write(chunk)) client.pause();
  };
  const resumeUpstream = () => void upstream.resume();
  const endUpstream = () => void upstream.destroy();
  // A server that is gone looks to the client as it would without a relay between them.
  const endClient = () => void client.destroy();
  // What follows is "close".
  const ignore = () => {};

  client.on("data", receive).on("drain", resumeUpstream).on("close", endUpstream).on("error", ignore);
  upstream.on("error", ignore).on("close", endClient);
  upstream.on("drain", () => client.resume());
  upstream.on("data", (chunk) => {
    begins = true;
    if (!client.write(chunk)) upstream.pause();
  });
}

/** The beginning of a request as it came. */
function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
  );
  return [`${method} ${url} HTTP/1.1`, ...lines, "", ""].join("\r\n");
}
