import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** How a request and its answer ended: the answer was written, or can no longer be. */
export type ExchangeEnd = "written" | "cut";

/** One request and its answer. */
export type Exchange = {
  /** Undefined while the answer may still be written. */
  readonly end: ExchangeEnd | undefined;
  /** Calls `act` once it has ended; at once when it has already. */
  onEnd(act: (end: ExchangeEnd) => void): void;
};

type Connection = {
  /** What ends the exchanges whose answers are still to be written. */
  exchanges: Set<() => void>;
  /** Who waits to hear whether the connection was reset. */
  watches: Set<(wasReset: boolean) => void>;
};

const connections = new WeakMap<Socket, Connection>();

/** One listener for all that goes over a connection, however many requests are pipelined on it. */
function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const connection: Connection = { exchanges: new Set(), watches: new Set() };
  connections.set(socket, connection);
  socket.once("close", (hadError) => {
    // In this order: an answer that turns out to be written may want to watch what became of it.
    for (const end of connection.exchanges) end();
    for (const watch of connection.watches) watch(hadError);
  });
  return connection;
}

/**
 * Follows an exchange from its request on. The response's own `close` is not enough: of pipelined requests only the
 * first has a response that knows its connection, and the others would never learn that it is gone.
 */
export function followExchange(request: IncomingMessage, response: ServerResponse): Exchange {
  const { exchanges } = connectionOf(request.socket);
  const acts: ((end: ExchangeEnd) => void)[] = [];
  let ended: ExchangeEnd | undefined;

  const end = () => {
    if (ended !== undefined) return;
    ended = response.writableFinished ? "written" : "cut";
    exchanges.delete(end);
    for (const act of acts) act(ended);
  };
  exchanges.add(end);
  response.once("close", end);
  if (request.socket.destroyed) end();

  return {
    get end() {
      return ended;
    },
    onEnd(act) {
      if (ended === undefined) acts.push(act);
      else act(ended);
    },
  };
}

/** Whether an answer on this connection is still to be written. */
export function isAnswering(socket: Socket): boolean {
  return connectionOf(socket).exchanges.size > 0;
}

/** Calls `act` when the connection is reset within `ms`, and before it carries another request. */
export function onReset(socket: Socket, ms: number, act: () => void): void {
  const { watches } = connectionOf(socket);
  const watch = (wasReset: boolean) => {
    clearTimeout(timer);
    watches.delete(watch);
    if (wasReset) act();
  };
  const timer = setTimeout(watch, ms, false).unref();
  watches.add(watch);
}

/** A further request on a connection proves that the answers written before it arrived. */
export function confirmEarlierAnswers(socket: Socket): void {
  for (const watch of connectionOf(socket).watches) watch(false);
}
