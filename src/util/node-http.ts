import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";

const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule("node:http");

/**
 * The used parts of `node:http`, loaded by `require`. An `import` reads all of its exports at once, and with them loads the
 * parts of `fetch` and `WebSocket`: 35 to 50 ms of CPU in every process.
 *
 * As it is when this is loaded: msw and others that put their own functions in the place of these later are not asked
 * about the harness's own requests.
 */
export const http = { Agent, createServer, get, request, STATUS_CODES };

/**
 * Has a server listen on this machine alone.
 *
 * @param options.host an address of 127.0.0.0/8
 * @param options.port any free one by default
 * @returns the port
 */
export async function listenOnLoopback(
  server: Server,
  { host = "127.0.0.1", port = 0 }: { host?: string; port?: number } = {},
): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server listens on no port");
  return address.port;
}

/** Ends a server together with its connections, requests under way included. Can be called again. */
export async function closeAtOnce(server: HttpServer): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
