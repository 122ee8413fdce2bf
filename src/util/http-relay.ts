import type { IncomingMessage, ServerResponse } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { urlToHttpOptions } from "node:url";
import { http } from "./node-http.ts";

/** The server behind a relay. */
export type RelayTarget = { host: string; port: number };

/** The server of a URL, over plain HTTP. */
export function relayTargetOf(url: string): RelayTarget {
  const { hostname, port } = urlToHttpOptions(new URL(url));
  return { host: hostname ?? "", port: Number(port ?? 80) };
}

export type RelayOptions = {
  /** The server for new connections; if undefined, they are closed. */
  target: () => RelayTarget | undefined;
  /**
   * Called with the first bytes of each request; returns true if it must be parsed. All others are passed on as bytes,
   * which takes a third of the time of reading and writing HTTP. Without it every request is parsed.
   */
  reads?: (request: Buffer) => boolean;
  /** Answers a parsed request, by {@link HttpRelay.forward} or directly. */
  answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
  /**
   * Returns true if a request for another protocol, such as WebSocket, may have it. Without it such requests are
   * answered as HTTP.
   */
  mayUpgrade?: (incoming: IncomingMessage) => boolean;
  /** True if each forwarded request gets its own connection, which can be broken with it. */
  ownConnections?: boolean;
};

export type HttpRelay = {
  /** Call `listen` on it; the relay does not. */
  readonly server: Server;
  /** Closes it and every connection through it. Can be called again. */
  close(): Promise<void>;
  /**
   * Forwards a request, unchanged unless a body or headers are given; returns the head of the answer. It is aborted
   * when the connection of `outgoing` ends.
   */
  forward(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    changes?: { body?: string; headers?: Readonly<Record<string, string>> },
  ): Promise<IncomingMessage>;
};

/** Makes a relay between HTTP clients and one server. A connection that breaks on one side also breaks on the other. */
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
  // Closing an idle connection would look like a fault.
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
  // With a listener, Node would treat every request that offers another protocol as an upgrade.
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
 * Passes the bytes of a connection in both directions until a request begins that must be parsed, then hands over the
 * connection with that request unread.
 *
 * HTTP clients do not send the next request before the last one is answered. So bytes from the client begin a request
 * if they are the first, or if the server has sent something since the last ones.
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
  // To the client, a broken server looks the same as without a relay.
  const endClient = () => void client.destroy();
  // A "close" event follows.
  const ignore = () => {};

  client.on("data", receive).on("drain", resumeUpstream).on("close", endUpstream).on("error", ignore);
  upstream.on("error", ignore).on("close", endClient);
  upstream.on("drain", () => client.resume());
  upstream.on("data", (chunk) => {
    begins = true;
    if (!client.write(chunk)) upstream.pause();
  });
}

/** The head of a request as it was received. */
function headOf({ method, url, rawHeaders }: IncomingMessage): string {
  const lines = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : [],
  );
  return [`${method} ${url} HTTP/1.1`, ...lines, "", ""].join("\r\n");
}
