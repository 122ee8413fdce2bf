import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import type { Server } from "node:net";

/**
 * Has a server listen on this machine alone.
 *
 * @param port any free one by default
 * @returns the port
 */
export async function listenOnLoopback(server: Server, port = 0): Promise<number> {
  server.listen(port, "127.0.0.1");
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
