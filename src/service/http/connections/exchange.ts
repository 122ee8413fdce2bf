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
  /** Calls `act` once the answers to all requests before it are written, so that its own can be; at once when they are. */
  onCurrent(act: () => void): void;
};

type OpenExchange = {
  request: IncomingMessage;
  response: ServerResponse;
  end(): void;
  whenCurrent: (() => void)[];
};

type Connection = {
  /** Exchanges whose answers are still to be written, in the order of their requests. */
  exchanges: Set<OpenExchange>;
  /** Called once there are none. */
  onceIdle: (() => void)[];
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
    onActivity: () => {},
  };
  connections.set(socket, connection);
  socket.once("close", () => {
    for (const { end } of connection.exchanges) end();
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
    whenCurrent: [],
    end() {
      if (ended !== undefined) return;
      // A response counts as finished although its last write has failed.
      ended = response.writableFinished && !(request.socket.errored instanceof Error) ? "written" : "cut";
      exchanges.delete(exchange);
      for (const act of acts) act(ended);
      const [next] = exchanges;
      for (const act of next?.whenCurrent.splice(0) ?? []) act();
      if (next !== undefined) return;
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
    onCurrent(act) {
      const [current] = exchanges;
      if (current === exchange || ended !== undefined) act();
      else exchange.whenCurrent.push(act);
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
 * Calls `act` once all requests that have completely arrived on this connection are answered; at once when they are.
 * Nothing more can be read from it then, so a partly arrived request ends here.
 */
export function afterWholeRequests(socket: Socket, act: () => void): void {
  const { exchanges, onceIdle } = connectionOf(socket);
  for (const { request, end } of exchanges) if (!request.complete) end();
  if (exchanges.size === 0) act();
  else onceIdle.push(act);
}
