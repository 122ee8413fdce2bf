import { setTimeout as sleep } from "node:timers/promises";
import { type Behaviour, type ReceivedCall, refusing, sendJson } from "./stub-node.ts";

/** A well-behaved node, except for the results of one method. */
export function altering(well: Behaviour, method: string, alter: (result: unknown) => unknown): Behaviour {
  return async (calls, response, body) => {
    const { end } = response;
    response.end = ((text: string) => {
      const answers: { id: number; result?: unknown }[] = JSON.parse(text);
      const altered = answers.map((answer) =>
        calls.some((call) => call.id === answer.id && call.method === method)
          ? { ...answer, result: alter(answer.result) }
          : answer,
      );
      return end.call(response, JSON.stringify(altered), "utf8");
    }) as typeof response.end;
    await well(calls, response, body);
  };
}

const status =
  (code: number, headers: Record<string, string> = {}): Behaviour =>
  (_, response) =>
    void response.writeHead(code, headers).end();

/** The kinds of misbehavior of a node, each made from a well-behaved one. `kind` is how the failure is counted. */
export const misbehaviours: Readonly<Record<string, { kind: string; of: (well: Behaviour) => Behaviour }>> = {
  silence: { kind: "timeout", of: () => () => {} },
  "an answer after its time": {
    kind: "timeout",

    of: (well) => async (calls, response, body) => {
      await sleep(900);
      if (!response.destroyed) await well(calls, response, body);
    },
  },
  "a byte now and then": {
    kind: "timeout",

    of: () => async (_, response) => {
      response.writeHead(200);
      while (!response.destroyed) {
        response.write(" ");
        await sleep(40);
      }
    },
  },
  "a reset connection": {
    kind: "connection",

    of: () => (_, response) => void response.socket?.resetAndDestroy(),
  },
  "an answer that breaks off": {
    kind: "connection",

    of: () => async (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("[");
      await sleep(5);
      response.destroy();
    },
  },
  "HTTP 429": { kind: "rate_limited", of: () => status(429) },
  "HTTP 429 with Retry-After": {
    kind: "rate_limited",

    of: () => status(429, { "retry-after": "1" }),
  },
  "HTTP 429 with a Retry-After of a year": {
    kind: "rate_limited",

    of: () => status(429, { "retry-after": "31536000" }),
  },
  "a rate limit on single calls": {
    kind: "rate_limited",

    of: () => refusing({ code: -32005, message: "limit exceeded" }),
  },
  "a rate limit on the batch": {
    kind: "rate_limited",

    of: () => (_, response) => sendJson(response, { error: { code: 429, message: "too many requests" } }),
  },
  "HTTP 500": { kind: "http_5xx", of: () => status(500) },
  "HTTP 503 with Retry-After": {
    kind: "http_5xx",

    of: () => status(503, { "retry-after": "1" }),
  },
  "HTTP 401": { kind: "http_4xx", of: () => status(401) },
  "a redirect": {
    kind: "http_3xx",

    of: () => status(302, { location: "https://example.com" }),
  },
  HTML: {
    kind: "malformed",

    of: () => (_, response) =>
      void response.writeHead(200, { "content-type": "text/html" }).end("<html>Maintenance</html>"),
  },
  "malformed JSON": {
    kind: "malformed",

    of: () => (_, response) => void response.end('[{"id":1'),
  },
  "an answer too few": {
    kind: "malformed",

    of: () => (_, response) => sendJson(response, []),
  },
  "an error for the whole batch": {
    kind: "refused",

    of: () => (_, response) => sendJson(response, { error: { code: -32600, message: "batches are off" } }),
  },
  "another chain": {
    kind: "wrong_chain",

    of: (well) => altering(well, "eth_chainId", () => "0xa"),
  },
  "a stale head": {
    kind: "lagging",

    of: (well) => altering(well, "eth_getBlockByNumber", (block) => ({ ...Object(block), number: "0x1" })),
  },
};

/** The answers of a well-behaved node on an empty chain. */
export function answerAsChain(
  { chainId, head }: { chainId: number; head: bigint },
  { method, params }: ReceivedCall,
): unknown {
  const block = { number: `0x${head.toString(16)}`, timestamp: "0x68000000", baseFeePerGas: "0x30" };
  if (method === "eth_chainId") return `0x${chainId.toString(16)}`;
  return method === "eth_getBlockByNumber" ? block : params[0];
}
