import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { listenOnLoopback } from "../../src/util/node-http.ts";

/** A request that passes through the proxy. */
export type ProxiedRequest = {
  /** Such as `POST /v1/settle`. */
  line: string;
  /** Resets the connection on both sides, as after a crash or by a firewall. */
  reset(): void;
  /** Resets only the connection to the service, as HAProxy does with idle ones; the next request opens another. */
  resetService(): void;
};

export type TcpProxyHooks = {
  /** Called when the first bytes of a request have gone through. */
  onRequest?: (request: ProxiedRequest) => void;
  /** Called when the response begins to arrive, which is held back until this returns. `status` is the HTTP status. */
  onAnswer?: (request: ProxiedRequest, status: number) => void;
  /** Called when the whole response has gone through. */
  onAnswered?: (request: ProxiedRequest, status: number) => void;
};

export type TcpProxy = { origin: string; close(): Promise<void> };

const requestLine = /^([A-Z]+ \S+) HTTP\/1\.1\r\n/;
const statusLine = /^HTTP\/1\.1 (\d{3}) /;

/**
 * A TCP proxy on loopback that passes bytes unchanged and lets a test cut connections at chosen moments. It only parses
 * the start of requests and responses: HTTP/1.1 without pipelining, as Node's fetch uses it.
 */
export async function startTcpProxy(target: string, hooks: TcpProxyHooks): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    let service: Socket | undefined = openService();
    let request: ProxiedRequest | undefined;
    let answer = "";

    function follow(from: Socket, other: () => Socket | undefined): void {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("error", () => other()?.destroy());
      from.on("end", () => other()?.end());
      from.on("close", () => {
        sockets.delete(from);
        other()?.destroy();
      });
    }

    function openService(): Socket {
      const opened = connect(Number(port), hostname);
      follow(opened, () => (service === opened ? client : undefined));
      opened.on("data", (bytes) => {
        const status = statusLine.exec(bytes.toString("latin1"))?.[1];
        if (request !== undefined && status !== undefined) hooks.onAnswer?.(request, Number(status));
        if (!client.destroyed) client.write(bytes);
        answer += bytes.toString("latin1");
        const [head = "", body = ""] = answer.split("\r\n\r\n");
        const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
        if (request === undefined || body.length !== Number(length)) return;
        hooks.onAnswered?.(request, Number(statusLine.exec(head)?.[1]));
      });
      return opened;
    }

    function requestOf(line: string): ProxiedRequest {
      const own: ProxiedRequest = {
        line,
        reset() {
          client.resetAndDestroy();
          service?.resetAndDestroy();
        },
        resetService() {
          if (request !== own) return;
          const idle = service;
          service = undefined;
          idle?.resetAndDestroy();
        },
      };
      return own;
    }

    follow(client, () => service);
    client.on("data", (bytes) => {
      service ??= openService();
      service.write(bytes);
      const line = requestLine.exec(bytes.toString("latin1"))?.[1];
      if (line === undefined) return;
      request = requestOf(line);
      answer = "";
      hooks.onRequest?.(request);
    });
  });
  return {
    origin: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
