import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { createHttpRelay, relayTargetOf } from "../../util/http-relay.ts";
import { listenOnLoopback } from "../../util/node-http.ts";
import { answerCalls } from "./answer-calls.ts";
import { breakExchange } from "./break-exchange.ts";
import {
  type ConnectionFaults,
  createConnectionFaults,
  type Hit,
  type Message,
  readAnswers,
  readMessage,
} from "./connection-faults.ts";

/** A proxy on loopback in front of one node. Disposing of it ends it, and every connection through it. */
export type FaultProxy = AsyncDisposable & {
  readonly url: string;
  /** The faults of the connection through it; nothing is wrong with one that has none. */
  readonly faults: ConnectionFaults;
};

/** A JSON-RPC request that went through a proxy, with what the node answered to each call. Times in milliseconds. */
export type ProxiedExchange = {
  /** Since the epoch. */
  at: number;
  tookMs: number;
  calls: readonly ProxiedCall[];
};

export type ProxiedCall = {
  method: string;
  params: readonly unknown[];
  /** Neither result nor error where the node was not asked, or gave no answer. */
  answer: { result?: unknown; error?: unknown };
  /** The kinds of the faults that hit it. */
  faults: readonly string[];
};

export type FaultProxyOptions = {
  /** The URL of the node, over plain HTTP. */
  target: string;
  /** Called after every exchange. Without it, requests are not even parsed while no fault is armed. */
  onExchange?: ((exchange: ProxiedExchange) => void) | undefined;
};

/**
 * Starts a proxy that does to the JSON-RPC between a service and a node what networks and providers do. Without a
 * fault, bytes go through as they are. It listens at the node's own address, so that no web page finds it that does not
 * find the node.
 *
 * @example
 * await using proxy = await createFaultProxy({ target: chain.rpcUrl });
 * proxy.faults.add({ network: "base", kind: "answer-lost", method: "eth_sendRawTransaction", nth: 2 });
 */
export async function createFaultProxy({ target, onExchange }: FaultProxyOptions): Promise<FaultProxy> {
  const faults = createConnectionFaults();
  const node = createLocalRpc(target);
  const to = relayTargetOf(target);

  async function exchange(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await text(incoming);
    const message = readMessage(body);
    const hits = message === undefined ? [] : faults.take(message.calls);
    const headers = { "content-type": "application/json" };
    const send = async (sent: string) =>
      text(await relay.forward(incoming, outgoing, { body: sent, headers }));
    let answered = "";
    const answer = async () => {
      answered = await (message === undefined || hits.length === 0
        ? send(body)
        : answerCalls(message, hits, node, send));
      return answered;
    };
    const at = Date.now();
    const from = performance.now();
    try {
      await breakExchange(hits, outgoing, answer);
    } finally {
      if (onExchange !== undefined && message !== undefined) {
        const calls = describeCalls(message, answered, hits);
        onExchange({ at, tookMs: performance.now() - from, calls });
      }
    }
  }

  const relay = createHttpRelay({
    target: () => to,
    ...(onExchange === undefined && { reads: () => faults.armed }),
    // A node that is gone looks to the service as it would without a proxy between them.
    answer: (incoming, outgoing) => void exchange(incoming, outgoing).catch(() => outgoing.socket?.destroy()),
  });
  return {
    url: `http://${to.host}:${await listenOnLoopback(relay.server, { host: to.host })}`,
    faults,
    [Symbol.asyncDispose]: relay.close,
  };
}

function describeCalls({ calls }: Message, answered: string, hits: readonly Hit[]): ProxiedCall[] {
  const answers = readAnswers(answered, calls);
  return calls.map(({ method, params }, index) => ({
    method,
    params,
    answer: answers[index] ?? {},
    faults: hits.filter((hit) => hit.calls.has(index)).map(({ fault }) => fault.spec.kind),
  }));
}
