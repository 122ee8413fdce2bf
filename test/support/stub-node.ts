import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { closeAtOnce, listenOnLoopback } from "../../src/util/node-http.ts";

/** A JSON-RPC call as it arrived. */
export type ReceivedCall = { id: number; method: string; params: unknown[] };

/** Answers one HTTP request; the calls are those in its batch. */
export type Behaviour = (
  calls: ReceivedCall[],
  response: ServerResponse,
  body: string,
) => void | Promise<void>;

/** An HTTP server that behaves like a node, as the test prescribes. */
export type StubNode = {
  url: string;
  /** The received batches, oldest first. */
  batches: ReceivedCall[][];
  behave(behaviour: Behaviour): void;
  stop(): Promise<void>;
};

export async function startStubNode(behaviour: Behaviour): Promise<StubNode> {
  let current = behaviour;
  const batches: ReceivedCall[][] = [];
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    const calls: ReceivedCall[] = JSON.parse(body);
    batches.push(calls);
    await current(calls, response, body);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    batches,
    behave: (next) => {
      current = next;
    },
    stop: () => closeAtOnce(server),
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

export function answering(result: (call: ReceivedCall) => unknown): Behaviour {
  return (calls, response) =>
    sendJson(
      response,
      calls.map((call) => ({ jsonrpc: "2.0", id: call.id, result: result(call) })),
    );
}

/** Answers every call with an error. */
export function refusing(error: unknown): Behaviour {
  return (calls, response) =>
    sendJson(
      response,
      calls.map(({ id }) => ({ jsonrpc: "2.0", id, error })),
    );
}

/** Passes every request to another node, unchanged. */
export function forwardingTo(url: string): Behaviour {
  return async (_, response, body) => {
    const answer = await fetch(url, {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    response.setHeader("content-type", "application/json");
    response.end(await answer.text());
  };
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
