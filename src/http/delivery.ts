import type { Socket } from "node:net";
import type { FastifyReply } from "fastify";
import type { Delivery } from "../facilitator/settle.ts";
import type { Log } from "../logging/logger.ts";

/** A reset this soon after an answer was written may have swallowed it. */
const resetWindowMs = 5_000;

const awaitingNext = new WeakMap<Socket, () => void>();

/**
 * Follows a success on its way out. Written to the end, it counts as delivered; cut off before, as lost. A connection
 * that is reset right after the answer was written, before it carried another request, takes the delivery back: the
 * peer closed without having read what we sent.
 */
export function followDelivery(reply: FastifyReply, delivery: Delivery, log: Log): void {
  const { raw } = reply;
  const { socket } = raw;
  const report = (error: unknown) => log.error({ err: error }, "the fate of an answer could not be recorded");

  // The caller left before there was an answer: the response will not close a second time.
  if (raw.closed || raw.destroyed) {
    delivery.lost().catch(report);
    return;
  }
  raw.once("close", () => {
    if (!raw.writableFinished) {
      delivery.lost().catch(report);
      return;
    }
    const recorded = delivery.delivered();
    recorded.catch(report);
    if (socket !== null) {
      onReset(socket, () => recorded.then(() => delivery.bounced()).catch(report));
    }
  });
}

function onReset(socket: Socket, act: () => void): void {
  const settle = () => {
    clearTimeout(timer);
    socket.off("close", onClose);
    awaitingNext.delete(socket);
  };
  const onClose = (hadError: boolean) => {
    settle();
    if (hadError) act();
  };
  const timer = setTimeout(settle, resetWindowMs).unref();
  socket.once("close", onClose);
  awaitingNext.set(socket, settle);
}

/** A further request on a connection proves that its earlier answers arrived. */
export function confirmEarlierAnswers(socket: Socket): void {
  awaitingNext.get(socket)?.();
}
