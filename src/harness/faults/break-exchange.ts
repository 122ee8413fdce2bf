import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hit } from "./connection-faults.ts";
import type { ConnectionFaultSpec } from "./fault-spec.ts";

/**
 * Ends an HTTP request without its answer, where a fault has it so; whether one did. Of faults that exclude each other,
 * the one that leaves least of the exchange decides.
 */
export function breakBefore(hits: readonly Hit[], outgoing: ServerResponse): boolean {
  const cutConnection = () => void outgoing.socket?.resetAndDestroy();
  const hang = findHit(hits, "hang");
  const limited = findHit(hits, "rate-limited");
  const refused = findHit(hits, "status");
  const malformed = findHit(hits, "malformed");

  if (hang !== undefined) hang.removed.addEventListener("abort", cutConnection);
  else if (findHit(hits, "reset") !== undefined) cutConnection();
  else if (limited !== undefined) {
    const { retryAfterSeconds = 1 } = limited.spec;
    outgoing.writeHead(429, { "retry-after": `${retryAfterSeconds}` }).end("Too many requests");
  } else if (refused !== undefined) outgoing.writeHead(refused.spec.status).end();
  else if (malformed !== undefined && malformed.spec.form !== "cut-off") {
    outgoing.writeHead(200, { "content-type": "text/html" }).end("<html><body>Maintenance</body></html>");
  } else return false;
  return true;
}

/** Answers an HTTP request as the faults that hit it have it: `answer` gives what the node says. */
export async function breakExchange(
  hits: readonly Hit[],
  outgoing: ServerResponse,
  answer: () => Promise<string>,
): Promise<void> {
  if (breakBefore(hits, outgoing)) return;
  const text = await answer();
  for (const { fault } of hits) {
    if (fault.spec.kind === "delay") await waitUnlessRemoved(fault.spec.ms, fault.removed);
  }
  if (findHit(hits, "answer-lost") !== undefined) return void outgoing.socket?.resetAndDestroy();
  const isCutOff = findHit(hits, "malformed") !== undefined;
  const body = isCutOff ? text.slice(0, Math.floor(text.length / 2)) : text;
  outgoing.writeHead(200, { "content-type": "application/json" }).end(body);
}

/** The first fault of a kind among those that hit. */
export function findHit<K extends ConnectionFaultSpec["kind"]>(
  hits: readonly Hit[],
  kind: K,
): { spec: Extract<ConnectionFaultSpec, { kind: K }>; removed: AbortSignal } | undefined {
  const isOfKind = (spec: ConnectionFaultSpec): spec is Extract<ConnectionFaultSpec, { kind: K }> =>
    spec.kind === kind;
  for (const { fault } of hits) {
    const { spec, removed } = fault;
    if (isOfKind(spec)) return { spec, removed };
  }
  return undefined;
}

/** Waits for milliseconds, or until the fault is removed. */
export async function waitUnlessRemoved(ms: number, removed: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: removed, ref: false }).catch(() => {});
}
