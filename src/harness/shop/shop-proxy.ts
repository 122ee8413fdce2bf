import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { createProxyServer } from "httpxy";
import type { ServiceLog } from "../../observe/log/logger.ts";
import { createTlsWarning } from "../../service/http/connections/tls-hello.ts";
import {
  describeRefusal,
  explainListenError,
  foreign,
  type Listening,
} from "../../service/http/local-server.ts";
import { isLoopbackHost, isLoopbackUrl } from "../../util/loopback.ts";
import { http } from "../../util/node-http.ts";
import { createShopRecorder, type ShopRecorderOptions } from "./record-shop.ts";
import { describeShopDown } from "./shop-down.ts";

type ShopProxyOptions = Omit<ShopRecorderOptions, "shop"> & {
  /** The origin of the shop. */
  target: string;
  listening: Listening;
  port: number;
  logger: Pick<ServiceLog, "warn">;
};

type ShopProxy = { readonly url: string; afterReset(): void; close(): Promise<void> };

/**
 * Starts a loopback proxy in front of a shop. It forwards requests, answers, redirects and WebSockets without buffering, and
 * publishes those that concern payments on the channel `shop`.
 *
 * @throws {KitError} if it cannot listen on the port
 */
export async function startShopProxy(options: ShopProxyOptions): Promise<ShopProxy> {
  const { target, port, logger, listening } = options;
  const host = isLoopbackHost(listening.host) ? listening.host : "127.0.0.1";
  const recorder = createShopRecorder({ ...options, shop: target });
  const proxy = createProxyServer({
    target,
    // Frameworks build their own URLs from `Host`: keeping it makes those lead through the proxy. TLS hosts route by it.
    changeOrigin: target.startsWith("https:"),
    secure: !isLoopbackUrl(target),
    // A reused connection that the shop is just closing would fail a payment.
    agent: false,
  });
  proxy.on("proxyRes", (answer, incoming, outgoing) => {
    // These headers are about the connection to the shop, which ends with the answer.
    delete answer.headers.connection;
    delete answer.headers["keep-alive"];
    const { location } = answer.headers;
    if (location !== undefined && URL.parse(location)?.origin === target) {
      answer.headers.location = location.replace(target, url);
    }
    recorder.answered(incoming, answer);
    // Flush, so that clients waiting for server-sent events see immediately that the stream has started.
    queueMicrotask(() => outgoing.headersSent || outgoing.flushHeaders());
  });
  proxy.on("error", (error, incoming, outgoing) => {
    const problem = "code" in error ? `${error.code}` : error.message;
    const isSent = incoming !== undefined && recorder.failed(incoming, problem);
    if (outgoing === undefined || !("writeHead" in outgoing)) return void outgoing?.destroy();
    if (outgoing.headersSent || outgoing.destroyed) return void outgoing.destroy();
    const { status, type, body } = describeShopDown({ target, problem, isSent }, incoming?.headers.accept);
    outgoing.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
  });

  const refusalOf = ({ headers }: IncomingMessage) => foreign({ host: headers.host }, listening);
  const server = http.createServer({ requestTimeout: 0 }, (incoming, outgoing) => {
    const problem = refusalOf(incoming);
    if (problem !== undefined) {
      outgoing.writeHead(403, { "content-type": "application/json" });
      return void outgoing.end(JSON.stringify(describeRefusal(problem, listening)));
    }
    recorder.received(incoming, outgoing);
    proxy.web(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    if (incoming.headers.upgrade?.toLowerCase() !== "websocket") return takeBack(incoming, socket, head);
    if (refusalOf(incoming) !== undefined) return void socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    proxy.ws(incoming, incoming.socket, {}, head).catch(() => socket.destroy());
  });
  /** Processes a request again without its upgrade headers, such as those for HTTP/2 that Java's client always sends. */
  function takeBack({ method, url, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
    const lines = rawHeaders.flatMap((name, index) =>
      index % 2 === 1 || /^(upgrade|http2-settings|connection)$/i.test(name)
        ? []
        : [`${name}: ${rawHeaders[index + 1]}`],
    );
    socket.unshift(head);
    socket.unshift(Buffer.from([`${method} ${url} HTTP/1.1`, ...lines, "", ""].join("\r\n"), "latin1"));
    server.emit("connection", socket);
  }
  const sockets = new Set<Duplex>();
  const track = (socket: Duplex) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  };
  server.on("connection", track);
  // A WebSocket's connection to the shop does not end if the client's is destroyed.
  proxy.on("open", track);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", (error) => reject(explainListenError(error, host, port)));
  server.listen({ host, port }, resolve);
  await promise;
  const address = server.address();
  const listensAt = typeof address === "object" && address !== null ? address.port : port;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${listensAt}`;
  const warnOfTls = createTlsWarning(logger, url);
  server.on("clientError", (error, socket) => {
    warnOfTls(error);
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
  });
  return {
    url,
    afterReset: recorder.forget,
    async close() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      for (const socket of sockets) socket.destroy();
      await closed.promise;
    },
  };
}
