import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { DeliveryFate } from "../../../observe/channels/channels.ts";
import type { ServiceLog } from "../../../observe/log/logger.ts";
import type { Delivery } from "../../facilitator/settle-result.ts";

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

/** How long the last byte of a success is held back, in milliseconds: longer than a reset takes from a near peer. */
const holdMs = 5;

/** The system's own addresses for callers on the same machine. */
const loopback: ReadonlySet<string | undefined> = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);

/**
 * Has the answer to a request, a success, written so that it is known whether the caller can have it: all but its last
 * byte, and that byte a moment later. A peer that has crashed or no longer waits resets the connection at the first part;
 * without the last byte the peer has no complete answer, so it is lost for certain and may be given to a repeat. Once
 * all is written it is delivered, whatever becomes of the connection: proxies reset those they no longer need, right after
 * they have read the answer. See docs/decisions/0016-delivery.md.
 *
 * A peer that sends no more may have left since the first part, and its reset shows only when something is written: it
 * gets the byte before the last by itself.
 *
 * The reset of a peer on the same machine is there before the write of the first part returns. Where no proxy stands in
 * between, which would have to bring the news first, it is looked for at once.
 *
 * The last question before it is complete is whether this process stood still meanwhile, so that it is not due any more.
 * Then the connection is cut, as if the process had died.
 *
 * The end of the response is where the framework hands over the whole body. A stream of two parts would do as well, and
 * takes three times as long.
 */
export function holdLastByte(
  { raw, request: { exchange } }: FastifyReply,
  { isDue }: Delivery,
  { noProxies }: { noProxies: boolean },
): void {
  const { end } = raw;
  raw.end = (body: unknown) => {
    raw.end = end;
    // Other plugins may have made a stream of it, which has been written by now.
    if (typeof body !== "string" && !Buffer.isBuffer(body)) return raw.end();
    // As text it is JSON: its last bytes are its last characters.
    raw.write(body.slice(0, -2));
    exchange.onCurrent(async () => {
      await resetsAreRead(noProxies && isBesideUs(raw.req));
      let written = -2;
      if (raw.socket?.readableEnded === true) {
        raw.write(body.slice(written, -1));
        written = -1;
        await resetsAreRead(false);
      }
      // If that is unknown, the next request finds it out.
      if (!(await isDue().catch(() => false))) raw.destroy();
      if (!raw.destroyed) raw.end(body.slice(written));
    });
    return raw;
  };
}

/** Returns true if the answer goes to a program on the same machine that has not stopped sending. */
function isBesideUs({ socket }: IncomingMessage): boolean {
  return loopback.has(socket.remoteAddress) && !socket.readableEnded;
}

/** Resolves when resets that have arrived by now, or within a moment where they may be on their way, are read. */
async function resetsAreRead(areHere: boolean): Promise<void> {
  // Sockets are read in between two such turns, and in between a timer and one.
  await (areHere ? setImmediate() : sleep(holdMs));
  await setImmediate();
}

/** Records whether a success was delivered: when all of it was written, and no error in its place; lost otherwise. */
export function followDelivery(
  { raw, request: { exchange } }: FastifyReply,
  delivery: Delivery,
  { log, count }: { log: ServiceLog; count: (fate: DeliveryFate) => void },
): void {
  exchange.onEnd(async (end) => {
    const fate = end === "written" && raw.statusCode === 200 ? "delivered" : "lost";
    count(fate);
    try {
      await delivery[fate]();
    } catch (error) {
      log.error({ err: error, fate }, "whether an answer was delivered could not be recorded");
    }
  });
}
