import { createServer, type RequestListener } from "node:http";
import { closeAtOnce, listenOnLoopback as listen } from "../../src/util/node-http.ts";

/** A server on this machine alone, at any free port. */
export type LoopbackServer = { origin: string; close(): Promise<void> };

export async function listenOnLoopback(handle: RequestListener): Promise<LoopbackServer> {
  const server = createServer(handle);
  const port = await listen(server);
  return { origin: `http://127.0.0.1:${port}`, close: () => closeAtOnce(server) };
}
