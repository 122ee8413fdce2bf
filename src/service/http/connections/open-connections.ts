import type { Socket } from "node:net";
import { addressGroup } from "../limits/address-group.ts";
import { currentExchange, onActivity } from "./exchange.ts";

/** How many connections may be open at a time. Beyond that, idle ones are closed for new ones. */
export type ConnectionLimits = {
  max: number;
  /** From one address (a /64 of IPv6). Behind a proxy that is the proxy's. */
  maxPerAddress: number;
};

export type OpenConnections = {
  add(socket: Socket): void;
  /** Closes connections whose peer does not read: for `stalledMs` nothing of an answer could be written. */
  closeStalled(stalledMs: number): void;
  /** Closes connections that carry nothing, and those on which a request has arrived in part if asked to. */
  closeIdle(options: { unfinishedToo: boolean }): void;
};

/** The connections of one address. */
type Group = {
  size: number;
  /** Those without a request under way, longest idle first, and how many bytes each had read when it became idle. */
  idle: Map<Socket, number>;
};

/** How many connections with a partly arrived request are skipped in search of an idle one. */
const maxPassedOver = 16;

/**
 * Knows every open connection. At a limit the longest idle connection makes room for a new one: of the same address at
 * the limit of an address, of the address with the most connections at the limit of all. So an address that opens many
 * and uses few cannot keep others out. Only where all are in use is the new one closed.
 */
export function createOpenConnections(limits: ConnectionLimits | undefined): OpenConnections {
  const groups = new Map<string, Group>();
  const busy = new Set<Socket>();
  /** How much was written to a connection, and since when nothing more. */
  const progress = new WeakMap<Socket, { bytesWritten: number; since: number }>();
  let size = 0;

  /** Whether there is room for a connection; may close an idle one for it. */
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

  /** Closes an idle connection, and forgets it at once, since its place is taken before its close event. */
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
    add(socket) {
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

    closeStalled(stalledMs) {
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

    closeIdle({ unfinishedToo }) {
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
