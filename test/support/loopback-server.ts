import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { closeAtOnce, listenOnLoopback as listen } from "../../src/util/node-http.ts";

export type LoopbackServer = { origin: string; close(): Promise<void> };

/**
 * Starts a server on a free port. If its handler fails, the response is a 500 with the error. `close` waits for running
 * handlers, whatever happened to their connections.
 */
export async function listenOnLoopback(
  handle: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<LoopbackServer> {
  const underWay = new Set<Promise<void>>();
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    try {
      await handle(request, response);
    } catch (error) {
      if (!response.headersSent) response.writeHead(500);
      response.end(`${error}`);
    }
  };
  const server = createServer((request, response) => {
    const answered = answer(request, response).finally(() => underWay.delete(answered));
    underWay.add(answered);
  });
  const port = await listen(server);
  return {
    origin: `http://127.0.0.1:${port}`,
    async close() {
      await closeAtOnce(server);
      await Promise.all(underWay);
    },
  };
}
