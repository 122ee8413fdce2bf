import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";

const { Agent, createServer, get, request, STATUS_CODES } = process.getBuiltinModule("node:http");

/**
 * The parts of `node:http` in use, loaded by `require`. An `import` reads all of its exports, and thereby loads the
 * code of `fetch` and `WebSocket`: 35 to 50 ms of CPU in every process.
 *
 * Fixed when this is loaded: msw and others that patch these functions later do not see the harness's own requests.
 */
export const http = { Agent, createServer, get, request, STATUS_CODES };

/**
 * Makes a server listen on this machine only.
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

/** Closes a server together with its connections, including requests in progress. Can be called again. */
export async function closeAtOnce(server: HttpServer): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
