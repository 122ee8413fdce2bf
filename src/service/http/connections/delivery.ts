import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { FastifyReply } from "fastify";
import type { DeliveryFate } from "../../../observe/channels/channels.ts";
import type { ServiceLog } from "../../../observe/log/logger.ts";
import type { Delivery } from "../../facilitator/settle-result.ts";

/** How long the last byte of a success is held back, in milliseconds: longer than a reset takes from a near peer. */
const holdMs = 5;

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
 * The last question before it is complete is whether this process stood still meanwhile, so that it is not due any more.
 * Then the connection is cut, as if the process had died.
 *
 * The end of the response is where the framework hands over the whole body. A stream of two parts would do as well, and
 * takes three times as long.
 */
export function holdLastByte({ raw, request: { exchange } }: FastifyReply, { isDue }: Delivery): void {
  const { end } = raw;
  raw.end = (body: unknown) => {
    raw.end = end;
    // Other plugins may have made a stream of it, which has been written by now.
    if (typeof body !== "string" && !Buffer.isBuffer(body)) return raw.end();
    // As text it is JSON: its last bytes are its last characters.
    raw.write(body.slice(0, -2));
    exchange.onCurrent(async () => {
      await resetsAreRead();
      let written = -2;
      if (raw.socket?.readableEnded === true) {
        raw.write(body.slice(written, -1));
        written = -1;
        await resetsAreRead();
      }
      // Where that cannot be told, the next request finds it out.
      if (!(await isDue().catch(() => false))) raw.destroy();
      if (!raw.destroyed) raw.end(body.slice(written));
    });
    return raw;
  };
}

/** Resets that have arrived after the timer are read in the same turn of the event loop. */
async function resetsAreRead(): Promise<void> {
  await sleep(holdMs);
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
