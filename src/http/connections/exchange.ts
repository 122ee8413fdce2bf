import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** How a request and its answer ended: the answer was written, or can no longer be. */
export type ExchangeEnd = "written" | "cut";

/** One request and its answer. */
export type HttpExchange = {
  /** Undefined while the answer may still be written. */
  readonly end: ExchangeEnd | undefined;
  /** Calls `act` once it has ended; at once when it has already. */
  onEnd(act: (end: ExchangeEnd) => void): void;
};

type OpenExchange = { request: IncomingMessage; response: ServerResponse; end(): void };

type Connection = {
  /** Exchanges whose answers are still to be written, in the order of their requests. */
  exchanges: Set<OpenExchange>;
  /** Called once there are none. */
  onceIdle: (() => void)[];
  /** Called when the connection closes, or proves that it delivered. */
  watches: Set<(wasReset: boolean) => void>;
  onActivity: (isBusy: boolean) => void;
};

const connections = new WeakMap<Socket, Connection>();

/** One listener for all that goes over a connection, however many requests are pipelined on it. */
function connectionOf(socket: Socket): Connection {
  const known = connections.get(socket);
  if (known !== undefined) return known;
  const connection: Connection = {
    exchanges: new Set(),
    onceIdle: [],
    watches: new Set(),
    onActivity: () => {},
  };
  connections.set(socket, connection);
  socket.once("close", (hadError) => {
    // In this order: an answer that turns out to be written may want to watch what became of it.
    for (const { end } of connection.exchanges) end();
    for (const watch of connection.watches) watch(hadError);
  });
  return connection;
}

/**
 * Follows an exchange from its request on. The response's own `close` is not enough: of pipelined requests only the
 * first has a response that knows its connection, and the others would never learn that it was closed.
 */
export function followExchange(request: IncomingMessage, response: ServerResponse): HttpExchange {
  const connection = connectionOf(request.socket);
  const { exchanges, onceIdle } = connection;
  const acts: ((end: ExchangeEnd) => void)[] = [];
  let ended: ExchangeEnd | undefined;

  const exchange: OpenExchange = {
    request,
    response,
    end() {
      if (ended !== undefined) return;
      ended = response.writableFinished ? "written" : "cut";
      exchanges.delete(exchange);
      for (const act of acts) act(ended);
      if (exchanges.size > 0) return;
      for (const act of onceIdle.splice(0)) act();
      connection.onActivity(false);
    },
  };
  exchanges.add(exchange);
  if (exchanges.size === 1) connection.onActivity(true);
  response.once("close", exchange.end);
  if (request.socket.destroyed) exchange.end();

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

/** Calls `act` when the first request of an idle connection arrives, and when the last one's answer has ended. */
export function onActivity(socket: Socket, act: (isBusy: boolean) => void): void {
  connectionOf(socket).onActivity = act;
}

/** The exchange of a busy connection whose answer is the next to be written, or is being written. */
export function currentExchange(
  socket: Socket,
): { request: IncomingMessage; response: ServerResponse } | undefined {
  const [current] = connectionOf(socket).exchanges;
  return current;
}

/**
 * Calls `act` once all requests that have arrived in full on this connection are answered; at once when they are. For
 * when nothing more can be read from it: a request that has arrived in part ends here.
 */
export function afterWholeRequests(socket: Socket, act: () => void): void {
  const { exchanges, onceIdle } = connectionOf(socket);
  for (const { request, end } of exchanges) if (!request.complete) end();
  if (exchanges.size === 0) act();
  else onceIdle.push(act);
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
