import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** A stream that is not read may hold some 300 KB until it is dropped. */
const mostStreams = 256;

/** A browser opens six at most for a site, in all of its windows. */
const mostPerAddress = 64;

/** Why there is no stream more. */
export type StreamRefusal = { status: 429 | 503; error: string };

/** The streams that are open. */
export type OpenStreams = {
  /** Why a connection cannot have a stream; undefined when it can. */
  refusal(socket: Socket): StreamRefusal | undefined;
  /** Counts a stream until its connection or its response closes, and then calls `end`. */
  add(socket: Socket, response: ServerResponse, end: () => void): void;
  /** Has all of them end. */
  close(): void;
};

export function createOpenStreams(): OpenStreams {
  const streams = new Map<Socket, ServerResponse>();

  function ofAddress(address: string | undefined): number {
    let count = 0;
    for (const { remoteAddress } of streams.keys()) if (remoteAddress === address) count++;
    return count;
  }

  return {
    refusal(socket) {
      if (streams.has(socket)) {
        return {
          status: 429,
          error: "This connection has a stream already, which does not end: open another connection",
        };
      }
      const closeSome = "close streams that are not read any more, or follow one for all readers";
      if (streams.size >= mostStreams) {
        return {
          status: 503,
          error: `${mostStreams} streams are open, and no more are served: ${closeSome}`,
        };
      }
      if (ofAddress(socket.remoteAddress) < mostPerAddress) return undefined;
      return {
        status: 429,
        error: `${mostPerAddress} streams to ${socket.remoteAddress} are open, and one address gets no more: ${closeSome}`,
      };
    },
    add(socket, response, end) {
      streams.set(socket, response);
      // A response whose turn never comes does not learn that its connection has closed.
      const closed = () => {
        if (streams.get(socket) !== response) return;
        streams.delete(socket);
        end();
      };
      socket.once("close", closed);
      response.once("close", () => {
        socket.off("close", closed);
        closed();
      });
    },
    close() {
      for (const response of streams.values()) response.end();
    },
  };
}
