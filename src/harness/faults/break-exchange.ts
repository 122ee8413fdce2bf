import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hit } from "./connection-faults.ts";
import type { ConnectionOrder } from "./fault-order.ts";

/**
 * Answers an HTTP request as the faults that hit it have it: `answer` gives what the node says. Of faults that exclude
 * each other, the one that leaves least of the exchange decides.
 */
export async function breakExchange(
  hits: readonly Hit[],
  outgoing: ServerResponse,
  answer: () => Promise<string>,
): Promise<void> {
  const cutConnection = () => void outgoing.socket?.resetAndDestroy();
  const hang = findHit(hits, "hang");
  const limited = findHit(hits, "rate-limited");
  const refused = findHit(hits, "status");
  const malformed = findHit(hits, "malformed");

  if (hang !== undefined) return hang.removed.addEventListener("abort", cutConnection);
  if (findHit(hits, "reset") !== undefined) return cutConnection();
  if (limited !== undefined) {
    const { retryAfterSeconds = 1 } = limited.order;
    outgoing.writeHead(429, { "retry-after": `${retryAfterSeconds}` }).end("Too many requests");
    return;
  }
  if (refused !== undefined) {
    outgoing.writeHead(refused.order.status).end();
    return;
  }
  if (malformed !== undefined && malformed.order.form !== "cut-off") {
    outgoing.writeHead(200, { "content-type": "text/html" }).end("<html><body>Maintenance</body></html>");
    return;
  }

  const text = await answer();
  for (const { fault } of hits) {
    if (fault.order.kind === "delay") await waitUnlessRemoved(fault.order.ms, fault.removed);
  }
  if (findHit(hits, "answer-lost") !== undefined) return cutConnection();
  const told = malformed === undefined ? text : text.slice(0, Math.floor(text.length / 2));
  outgoing.writeHead(200, { "content-type": "application/json" }).end(told);
}

/** The first fault of a kind among those that hit. */
function findHit<K extends ConnectionOrder["kind"]>(
  hits: readonly Hit[],
  kind: K,
): { order: Extract<ConnectionOrder, { kind: K }>; removed: AbortSignal } | undefined {
  const isOfKind = (order: ConnectionOrder): order is Extract<ConnectionOrder, { kind: K }> =>
    order.kind === kind;
  for (const { fault } of hits) {
    const { order, removed } = fault;
    if (isOfKind(order)) return { order, removed };
  }
  return undefined;
}

async function waitUnlessRemoved(ms: number, removed: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: removed, ref: false }).catch(() => {});
}
