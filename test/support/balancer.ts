import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { closeAtOnce, listenOnLoopback } from "../../src/util/node-http.ts";

export type Balancer = { origin: string; close(): Promise<void> };

/** A response header that names the service which sent it: `instance-1` is the first. */
export const instanceHeader = "x-instance";

/** Milliseconds between readiness probes; a real balancer also notices late. */
const probeMs = 100;

/**
 * An HTTP proxy on loopback that passes each request to one of the ready services, in turns. It keeps connections to
 * them and resets idle ones, as HAProxy does. A request is only retried on another service if the first one refused the
 * connection; a connection that breaks is a 502.
 */
export async function startBalancer(services: () => readonly string[]): Promise<Balancer> {
  const agent = new Agent({ keepAlive: true });
  agent.on("free", (socket: Socket) => {
    setTimeout(() => {
      const isIdle = Object.values(agent.freeSockets).some((sockets) => sockets?.includes(socket));
      if (isIdle) socket.resetAndDestroy();
    }, 30).unref();
  });
  let ready: readonly string[] = [];
  const probing = setInterval(() => void probe(), probeMs);
  let turn = 0;

  async function probe(): Promise<void> {
    const asked = services().map(async (origin) => {
      const answer = await fetch(`${origin}/readyz`).catch(() => undefined);
      await answer?.arrayBuffer().catch(() => {});
      return answer?.status === 200 ? [origin] : [];
    });
    ready = (await Promise.all(asked)).flat();
  }

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const known = ready.length > 0 ? ready : services();
    for (let attempt = 0; attempt < known.length; attempt++) {
      const origin = known[turn++ % known.length] ?? "";
      try {
        const answer = await ask(origin, incoming, body);
        const content = await buffer(answer);
        const { connection: _, "transfer-encoding": __, ...headers } = answer.headers;
        const instance = `instance-${services().indexOf(origin) + 1}`;
        outgoing.writeHead(answer.statusCode ?? 502, { ...headers, [instanceHeader]: instance }).end(content);
        return;
      } catch (error) {
        if (Reflect.get(Object(error), "code") !== "ECONNREFUSED") break;
      }
    }
    outgoing.writeHead(502, { "content-type": "text/plain" }).end("bad gateway");
  }

  async function ask(origin: string, incoming: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { method, headers, url = "/" } = incoming;
    const outgoing = request(`${origin}${url}`, { method, headers, agent });
    outgoing.end(body);
    const [answer] = await once(outgoing, "response");
    return answer;
  }

  const server = createServer((incoming, outgoing) => {
    void forward(incoming, outgoing).catch(() => outgoing.destroy());
  });
  const [port] = await Promise.all([listenOnLoopback(server), probe()]);
  return {
    origin: `http://127.0.0.1:${port}`,
    async close() {
      clearInterval(probing);
      await closeAtOnce(server);
      agent.destroy();
    },
  };
}
