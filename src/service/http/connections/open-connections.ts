import { isIPv4, isIPv6, type Socket } from "node:net";
import fp from "fastify-plugin";
import { problemDetails } from "../../../protocol/problems.ts";
import { ProblemError } from "../problems/problem-error.ts";
import { currentExchange, followExchange, type HttpExchange, onActivity } from "./exchange.ts";
import { answerHalfClosed, closeFurtherSockets, type Timeouts } from "./listen.ts";

/** How many connections may be open at the same time. Beyond that, idle ones are closed to make room for new ones. */
export type ConnectionLimits = {
  max: number;
  /** The limit per address (per /64 for IPv6). Behind a proxy, that is the proxy's address. */
  maxPerAddress: number;
};

type Group = {
  size: number;
  /** Connections without a request in progress, longest idle first, and the bytes each had read when it became idle. */
  idle: Map<Socket, number>;
};

/** How many connections with a partial request are skipped in search of an idle one. */
const maxPassedOver = 16;

/**
 * Tracks every open connection. At a limit the longest idle connection is closed for a new one: at the limit per
 * address one of the same address, at the total limit one of the address with the most connections. So an address that
 * opens many and uses few cannot keep others out. The new one is closed only if all are in use.
 */
function createOpenConnections(limits: ConnectionLimits | undefined) {
  const groups = new Map<string, Group>();
  const busy = new Set<Socket>();
  /** The bytes written to a connection, and since when that number is unchanged. */
  const progress = new WeakMap<Socket, { bytesWritten: number; since: number }>();
  let size = 0;

  /** Returns true if there is room for a connection; may close an idle one to make it. */
  function makeRoom(group: Group): boolean {
    if (limits === undefined) return true;
    if (group.size >= limits.maxPerAddress && !closeLongestIdle(group)) return false;
    return size < limits.max || [...groups.values()].sort((a, b) => b.size - a.size).some(closeLongestIdle);
  }

  function closeLongestIdle(group: Group): boolean {
    let unfinished: Socket | undefined;
    let passedOver = 0;
    for (const [socket, bytesRead] of group.idle) {
      if (socket.bytesRead === bytesRead) return close(socket, group);
      unfinished ??= socket;
      if (++passedOver === maxPassedOver) break;
    }
    return unfinished !== undefined && close(unfinished, group);
  }

  /** Closes an idle connection, and forgets it at once, since its room is needed before its close event. */
  function close(socket: Socket, group: Group): true {
    forget(socket, group);
    socket.destroy();
    return true;
  }

  const forgotten = new WeakSet<Socket>();
  function forget(socket: Socket, group: Group): void {
    if (forgotten.has(socket)) return;
    forgotten.add(socket);
    size--;
    group.size--;
    group.idle.delete(socket);
    busy.delete(socket);
  }

  return {
    add(socket: Socket): void {
      const name = addressGroup(socket.remoteAddress);
      const group = groups.get(name) ?? { size: 0, idle: new Map() };
      if (!makeRoom(group)) {
        socket.destroy();
        return;
      }
      groups.set(name, group);
      size++;
      group.size++;
      group.idle.set(socket, 0);
      onActivity(socket, (isBusy) => {
        if (isBusy) {
          group.idle.delete(socket);
          busy.add(socket);
        } else {
          busy.delete(socket);
          if (!socket.destroyed) group.idle.set(socket, socket.bytesRead);
        }
      });
      socket.once("close", () => {
        forget(socket, group);
        if (group.size === 0) groups.delete(name);
      });
    },

    /** Closes connections whose peer does not read: none of a response could be written for `stalledMs`. */
    closeStalled(stalledMs: number): void {
      const time = performance.now();
      for (const socket of busy) {
        const { response } = currentExchange(socket) ?? {};
        if (response === undefined || !response.headersSent) continue;
        const last = progress.get(socket);
        const { bytesWritten } = socket;
        if (last?.bytesWritten !== bytesWritten) progress.set(socket, { bytesWritten, since: time });
        else if (time - last.since >= stalledMs) socket.destroy();
      }
    },

    /** Closes connections that carry nothing and, with `unfinishedToo`, those with a partial request. */
    closeIdle({ unfinishedToo }: { unfinishedToo: boolean }): void {
      for (const { idle } of groups.values()) {
        for (const [socket, bytesRead] of idle) {
          if (unfinishedToo || socket.bytesRead === bytesRead) socket.destroy();
        }
      }
      if (!unfinishedToo) return;
      for (const socket of busy) if (currentExchange(socket)?.request.complete === false) socket.destroy();
    },
  };
}

/**
 * The name under which requests from an address are counted: the address itself, or for IPv6 its /64, since every host
 * can pick any address in its own. Anything that is not an address, which a trusted proxy may pass on, is "unknown".
 */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return "unknown";
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return "unknown";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;

  const [start = "", rest] = address.replace(/%.*$/, "").split("::");
  const head = words(start);
  const tail = rest === undefined ? [] : words(rest);
  const zeros = Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0);
  const prefix = [...head, ...zeros, ...tail].slice(0, 4);
  return `${prefix.map((word) => word.toString(16)).join(":")}::/64`;
}

/** The 16-bit words of a part of an IPv6 address; one written as IPv4 counts as two. */
function words(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((word) => (word.includes(".") ? [0, 0] : [Number.parseInt(word, 16)]));
}

/** Each connection costs some KB and a file descriptor, and buyers do not connect to a facilitator directly. */
const mostConnections = 10_000;

/**
 * The number of connections that a process may have open, by its file descriptors: a quarter of them, at least 128, is left
 * for the database and for requests to nodes, without which connections are useless. One address may use three quarters.
 */
export function connectionCapacity(openFiles: number | undefined): ConnectionLimits {
  const left = openFiles === undefined ? mostConnections : openFiles - Math.max(128, openFiles / 4);
  const max = Math.max(1, Math.min(mostConnections, Math.floor(left)));
  return { max, maxPerAddress: Math.ceil(max * 0.75) };
}

/**
 * Like {@link connectionCapacity} for a server whose callers are all on this machine: their one address may use every
 * connection.
 */
export function localConnectionCapacity(openFiles: number | undefined): ConnectionLimits {
  const { max } = connectionCapacity(openFiles);
  return { max, maxPerAddress: max };
}

declare module "fastify" {
  interface FastifyRequest {
    exchange: HttpExchange;
  }
}

/** How often a closing server checks for connections to close, in milliseconds. */
const closingCheckMs = 100;

/** How long a closing server waits for partial requests and for stalled readers, in milliseconds. */
const closingPatienceMs = 2_000;

/**
 * Tracks every connection and its exchanges, limits the number of connections, and drops those whose peer does not read.
 *
 * A closing server waits for all of its connections, which clients keep open for minutes. So connections that carry nothing
 * are closed at once, and the others as soon as their last answer is written.
 */
export const connections = fp<{
  limits: ConnectionLimits | undefined;
  timeouts: Pick<Timeouts, "stalledMs" | "checkMs">;
}>(async (app, { limits, timeouts }) => {
  const open = createOpenConnections(limits);
  app.server.on("connection", (socket) => open.add(socket));
  answerHalfClosed(app.server);

  const check = setInterval(() => open.closeStalled(timeouts.stalledMs), timeouts.checkMs).unref();
  let sweep: NodeJS.Timeout | undefined;
  let closing: Promise<void> | undefined;
  app.addHook("onClose", async () => {
    await closing;
    clearInterval(sweep);
    clearInterval(check);
  });

  app.addHook("preClose", async () => {
    closing = closeFurtherSockets(app.server);
    if (!app.server.listening) return;
    const since = performance.now();
    const closeWhatCan = () => {
      const isLate = performance.now() - since >= closingPatienceMs;
      open.closeIdle({ unfinishedToo: isLate });
      open.closeStalled(Math.min(timeouts.stalledMs, closingPatienceMs));
    };
    closeWhatCan();
    sweep = setInterval(closeWhatCan, closingCheckMs);
  });

  app.decorateRequest("exchange");
  app.addHook("onRequest", (request, reply, done) => {
    request.exchange = followExchange(request.raw, reply.raw);
    done();
  });
});

/** Refuses new payments while the server closes, and asks clients to close the connection after their answer. */
export const refuseWhileClosing = fp(async (app) => {
  let closing = false;

  app.addHook("preClose", async () => {
    closing = true;
  });

  app.addHook("onRequest", (request, _reply, done) => {
    if (closing && request.route.config.operation !== undefined) {
      throw new ProblemError("shuttingDown", problemDetails.shuttingDown, {
        retryAfterSeconds: 1,
      });
    }
    done();
  });

  app.addHook("onSend", (_request, reply, payload, done) => {
    if (closing) reply.header("connection", "close");
    done(null, payload);
  });
});
