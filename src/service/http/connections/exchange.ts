import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { DeliveryFate } from "../../../observe/channels/channels.ts";
import type { ServiceLog } from "../../../observe/log/logger.ts";
import type { Delivery } from "../../facilitator/settle-result.ts";

/** How an exchange ended: the answer was written, or can no longer be. */
export type ExchangeEnd = "written" | "cut";

/** One request and its answer. */
export type HttpExchange = {
  /** Undefined while the answer may still be written. */
  readonly end: ExchangeEnd | undefined;
  /** Calls `act` once it has ended; at once if it already has. */
  onEnd(act: (end: ExchangeEnd) => void): void;
  /** Calls `act` once the answers to all earlier requests are written, so that this one can be; at once if they are. */
  onCurrent(act: () => void): void;
};

type OpenExchange = {
  request: IncomingMessage;
  response: ServerResponse;
  end(): void;
  whenCurrent: (() => void)[];
};

type Connection = {
  /** Exchanges whose answers are not written yet, in the order of their requests. */
  exchanges: Set<OpenExchange>;
  /** Called once no exchange is left. */
  onceIdle: (() => void)[];
  onActivity: (isBusy: boolean) => void;
};

const connections = new WeakMap<Socket, Connection>();

/** One listener per connection, however many requests are pipelined on it. */
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
 * first has a response that knows its connection, so the others would never learn that it was closed.
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
      // A response counts as finished even if its last write has failed.
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

/** Calls `act` when the first request on an idle connection arrives, and when the last answer has ended. */
export function onActivity(socket: Socket, act: (isBusy: boolean) => void): void {
  connectionOf(socket).onActivity = act;
}

/** The exchange of a busy connection whose answer is being written, or is next. */
export function currentExchange(
  socket: Socket,
): { request: IncomingMessage; response: ServerResponse } | undefined {
  const [current] = connectionOf(socket).exchanges;
  return current;
}

/**
 * Calls `act` once all complete requests on this connection are answered; at once if they are. Nothing more can be read
 * from it then, so a partial request ends here.
 */
export function afterWholeRequests(socket: Socket, act: () => void): void {
  const { exchanges, onceIdle } = connectionOf(socket);
  for (const { request, end } of exchanges) if (!request.complete) end();
  if (exchanges.size === 0) act();
  else onceIdle.push(act);
}

/** How long the last byte of a success is held back, in milliseconds: longer than a reset takes from a nearby peer. */
const holdMs = 5;

/** Loopback addresses, used by callers on the same machine. */
const loopback: ReadonlySet<string | undefined> = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);

/**
 * Writes the answer to a request, a success, in a way that shows if the caller can have it: all but the last byte, and
 * that byte a moment later. A peer that has crashed or no longer waits resets the connection on the first part. Without
 * the last byte its answer is incomplete, so the success is certainly lost and may be given to a repeat. Once
 * everything is written, it counts as delivered, whatever happens to the connection: proxies reset connections that
 * they no longer need right after reading the answer. See docs/decisions/0016-delivery.md.
 *
 * A peer that stopped sending may have left since the first part, and its reset shows only on a write: so it gets the
 * second-to-last byte separately.
 *
 * The reset of a peer on the same machine arrives before the write of the first part returns. If no proxy stands in
 * between, which would have to forward it first, it is checked for at once.
 *
 * The last check before the answer is complete is whether the success is still due: this process may have been
 * suspended meanwhile. If it is not, the connection is cut, as if the process had died.
 *
 * This overrides the response's `end`, to which the framework passes the whole body. A stream of two parts would work
 * too, but takes three times as long.
 */
export function holdLastByte(
  { raw, request: { exchange } }: FastifyReply,
  { isDue }: Delivery,
  { noProxies }: { noProxies: boolean },
): void {
  const { end } = raw;
  raw.end = (body: unknown) => {
    raw.end = end;
    // Other plugins may have turned it into a stream, which has been written by now.
    if (typeof body !== "string" && !Buffer.isBuffer(body)) return raw.end();
    // A string is JSON, so its last bytes are its last characters.
    raw.write(body.slice(0, -2));
    exchange.onCurrent(async () => {
      await resetsAreRead(noProxies && isBesideUs(raw.req));
      let written = -2;
      if (raw.socket?.readableEnded === true) {
        raw.write(body.slice(written, -1));
        written = -1;
        await resetsAreRead(false);
      }
      // If that is unknown, the next request finds out.
      if (!(await isDue().catch(() => false))) raw.destroy();
      if (!raw.destroyed) raw.end(body.slice(written));
    });
    return raw;
  };
}

/** Returns true if the caller is on the same machine and has not stopped sending. */
function isBesideUs({ socket }: IncomingMessage): boolean {
  return loopback.has(socket.remoteAddress) && !socket.readableEnded;
}

/** Resolves when resets that have arrived are read; if they may still be on their way, waits a moment first. */
async function resetsAreRead(areHere: boolean): Promise<void> {
  // Sockets are read between two such turns, and between a timer and a turn.
  await (areHere ? setImmediate() : sleep(holdMs));
  await setImmediate();
}

/** Records the fate of a success: delivered if all of it was written, and no error instead; otherwise lost. */
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
