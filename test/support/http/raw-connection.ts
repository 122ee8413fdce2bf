import { once } from "node:events";
import { connect } from "node:net";
import { goodKey } from "./stub-app.ts";

/** A TCP connection on which the test controls every byte. */
export type RawConnection = {
  send(text: string): void;
  /** Everything received so far. */
  received(): string;
  /** Resolves when the received text matches. */
  until(pattern: RegExp): Promise<string>;
  /** Resolves with the received text when the other side has closed. */
  closed(): Promise<string>;
  /** Ends the sending side, and goes on reading. */
  halfClose(): void;
  /** Ends the connection with a reset. */
  reset(): void;
  end(): void;
};

export async function openRawConnection(port: number): Promise<RawConnection> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  let text = "";
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const look of waiting) look();
  };
  let isClosed = false;
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    wake();
  });
  for (const event of ["end", "close"] as const) {
    socket.on(event, () => {
      isClosed = true;
      wake();
    });
  }
  socket.on("error", () => {});

  function waitFor(done: () => boolean, what: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const timer = setTimeout(() => reject(new Error(`${what} did not happen; received: ${text}`)), 50_000);
    const look = () => {
      if (!done()) return;
      clearTimeout(timer);
      waiting.delete(look);
      resolve(text);
    };
    waiting.add(look);
    look();
    return promise;
  }

  return {
    send: (bytes) => void socket.write(bytes, "latin1"),
    received: () => text,
    until: (pattern) => waitFor(() => pattern.test(text), String(pattern)),
    closed: () => waitFor(() => isClosed, "the end"),
    halfClose: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    end: () => void socket.destroy(),
  };
}

/** The text of a POST with a valid key. */
export function postText(path: string, body: unknown, headers: readonly string[] = []): string {
  const text = JSON.stringify(body);
  return [
    `POST ${path} HTTP/1.1`,
    "host: localhost",
    `authorization: ${goodKey}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
    ...headers,
    "",
    text,
  ].join("\r\n");
}
