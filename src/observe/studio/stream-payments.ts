import type { ServerResponse } from "node:http";
import type { PaymentLog } from "./payment-log.ts";

/** No more than this waits for a reader; what follows is written when it has read on. */
const mostUnreadBytes = 262_144;

/** Comment lines that keep proxies and readers from giving up; a reader that took nothing meanwhile is dropped. */
const keepAliveMs = 15_000;

/**
 * Writes every change of a payment as Server-Sent Events, from where a reader was on. A reader that is dropped comes back
 * with its `Last-Event-ID`. Gives what ends it.
 */
export function streamPayments(
  response: ServerResponse,
  { log, lastEventId }: { log: PaymentLog; lastEventId: string | string[] | undefined },
): () => void {
  let era = log.era();
  let sent = resumeAt(lastEventId, era, log.newest());
  /** Whether so much waits for the reader that nothing more is written until it has read on. */
  let isUnread = false;
  /** How many bytes it had taken when that was last looked at; undefined when none waited for it then. */
  let takenWhenWaiting: number | undefined;

  function isFull(): boolean {
    if (isUnread) return true;
    if (response.writableLength <= mostUnreadBytes) return false;
    isUnread = true;
    response.once("drain", () => {
      isUnread = false;
      send();
    });
    return true;
  }

  function send(): void {
    if (response.destroyed || isFull()) return;
    // What the reader knows is of another era, or nothing.
    if (sent === undefined || era !== log.era()) {
      response.write("event: reset\ndata: {}\n\n");
      sent = 0;
      era = log.era();
    }
    for (const summary of log.changedSince(sent)) {
      if (isFull()) return;
      response.write(`id: ${era}.${summary.version}\nevent: payment\ndata: ${JSON.stringify(summary)}\n\n`);
      sent = summary.version;
    }
  }

  function keepAlive(): void {
    if (response.destroyed) return;
    const waiting = response.writableLength;
    const takenNow = response.socket === null ? 0 : response.socket.bytesWritten - waiting;
    if (waiting > 0 && takenNow === takenWhenWaiting) response.destroy();
    else if (!isUnread) response.write(": still here\n\n");
    takenWhenWaiting = waiting > 0 ? takenNow : undefined;
  }

  send();
  const unsubscribe = log.onChange(send);
  const timer = setInterval(keepAlive, keepAliveMs).unref();
  return () => {
    unsubscribe();
    clearInterval(timer);
  };
}

/** The version to go on from; undefined when the reader has to begin anew. */
function resumeAt(
  lastEventId: string | string[] | undefined,
  era: string,
  newest: number,
): number | undefined {
  const [, of, version] = /^([^.]*)\.(\d{1,15})$/.exec(String(lastEventId ?? "")) ?? [];
  return of === era && Number(version) <= newest ? Number(version) : undefined;
}
