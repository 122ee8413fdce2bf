import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConnectionFaults, Hit } from "./connection-faults.ts";
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

/** What faults of the facilitator call its routes; everything else it serves has none. */
const operation = /^(?:\/v1)?\/(verify|settle|supported)(?:\?|$)/;

/**
 * Has requests to the facilitator end as their faults have it, where they come in: the service beside it knows nothing of
 * them, and of an answer that is lost it learns as it does of a broken connection.
 */
export function breakAnswers(server: Server, faults: ConnectionFaults): void {
  const listeners = server.listeners("request") as RequestListener[];
  server.removeAllListeners("request");
  server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const [, name] = faults.armed ? (operation.exec(incoming.url ?? "") ?? []) : [];
    const hits = name === undefined ? [] : faults.take([{ method: name, params: [] }]);
    if (breakBefore(hits, outgoing)) return;
    if (hits.length > 0) holdBack(hits, outgoing);
    for (const listener of listeners) listener.call(server, incoming, outgoing);
  });
}

/** Delays an answer from its first byte on, or cuts the connection in its place. */
function holdBack(hits: readonly Hit[], outgoing: ServerResponse): void {
  const isLost = findHit(hits, "answer-lost") !== undefined;
  let last: Promise<unknown> | undefined;

  async function waitForFaults(): Promise<void> {
    for (const { fault } of hits) {
      if (fault.spec.kind === "delay") await waitUnlessRemoved(fault.spec.ms, fault.removed);
    }
    if (isLost) outgoing.socket?.resetAndDestroy();
  }

  /** Does what is asked of the response when it is the turn of that. */
  function later(method: (...args: never[]) => unknown) {
    return (...args: unknown[]) => {
      last = (last ?? waitForFaults()).then(() => isLost || Reflect.apply(method, outgoing, args));
    };
  }

  const [write, end] = [later(outgoing.write), later(outgoing.end)];
  outgoing.write = (...args: unknown[]) => {
    write(...args);
    return true;
  };
  outgoing.end = (...args: unknown[]) => {
    end(...args);
    return outgoing;
  };
}
