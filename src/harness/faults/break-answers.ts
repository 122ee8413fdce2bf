import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { breakBefore, findHit, waitUnlessRemoved } from "./break-exchange.ts";
import type { ConnectionFaults, Hit } from "./connection-faults.ts";

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
