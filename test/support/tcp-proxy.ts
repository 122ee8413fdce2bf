import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A request on its way through the proxy. */
export type ProxiedRequest = {
  /** `POST /v1/settle`. */
  line: string;
  /** Cuts its connection at both sides with a reset, as a crash or a firewall in between does. */
  reset(): void;
};

export type TcpProxyHooks = {
  /** The first bytes of a request have gone through. */
  onRequest?: (request: ProxiedRequest) => void;
  /** The first bytes of its answer have come, and are held back until this returns; `status` is that of HTTP. */
  onAnswer?: (request: ProxiedRequest, status: number) => void;
};

export type TcpProxy = { origin: string; close(): Promise<void> };

const requestLine = /^([A-Z]+ \S+) HTTP\/1\.1\r\n/;
const statusLine = /^HTTP\/1\.1 (\d{3}) /;

/**
 * A TCP proxy on loopback that passes bytes on unchanged and lets a test cut connections at chosen moments. It reads
 * along only where a request and its answer begin: HTTP/1.1 without pipelining, as Node's fetch speaks it.
 */
export async function startTcpProxy(target: string, hooks: TcpProxyHooks): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const service = connect(Number(port), hostname);
    const reset = () => {
      client.resetAndDestroy();
      service.resetAndDestroy();
    };
    let request: ProxiedRequest | undefined;
    for (const [from, to] of [
      [client, service],
      [service, client],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("error", () => to.destroy());
      from.on("end", () => to.end());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
    client.on("data", (bytes) => {
      service.write(bytes);
      const line = requestLine.exec(bytes.toString("latin1"))?.[1];
      if (line === undefined) return;
      request = { line, reset };
      hooks.onRequest?.(request);
    });
    service.on("data", (bytes) => {
      const status = statusLine.exec(bytes.toString("latin1"))?.[1];
      if (request !== undefined && status !== undefined) hooks.onAnswer?.(request, Number(status));
      if (!client.destroyed) client.write(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
