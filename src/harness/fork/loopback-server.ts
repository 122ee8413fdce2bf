import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { foreign } from "../../service/http/local-server.ts";
import { closeAtOnce, listenOnLoopback } from "../../util/loopback.ts";
import { http } from "../../util/node-http.ts";

/** An HTTP server on this machine alone, at any free port. */
export type LoopbackServer = {
  readonly url: string;
  close(): Promise<void>;
};

/**
 * Starts a server for JSON that is posted to it: gives the body of each answer. What throws breaks the connection. Web
 * pages get 403: its callers are the programs of this machine.
 */
export async function startLoopbackServer(
  answer: (body: string) => Promise<string>,
): Promise<LoopbackServer> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const { origin } = request.headers;
    if (origin !== undefined || foreign(request.headers, { host: "127.0.0.1" }) !== undefined) {
      response.writeHead(403).end();
      return;
    }
    try {
      const body = await answer(await text(request));
      response.writeHead(200, { "content-type": "application/json" }).end(body);
    } catch {
      response.destroy();
    }
  };
  const server = http.createServer(respond);
  return {
    url: `http://127.0.0.1:${await listenOnLoopback(server)}`,
    close: () => closeAtOnce(server),
  };
}
