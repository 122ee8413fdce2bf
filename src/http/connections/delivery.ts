import type { Socket } from "node:net";
import type { DeliveryFate } from "../../channels/channels.ts";
import type { Delivery } from "../../facilitator/settle.ts";
import type { ServiceLog } from "../../logging/logger.ts";
import { type HttpExchange, onReset } from "./exchange.ts";

/** A reset this soon after an answer was written may have swallowed it. */
const resetWindowMs = 5_000;

/**
 * Follows a success on its way out. Written to the end, it counts as delivered; cut off before, as lost. A connection
 * that is reset right after the answer was written, before it carried another request, takes the delivery back: the
 * peer closed without having read what we sent.
 */
export function followDelivery(
  { exchange, socket }: { exchange: HttpExchange; socket: Socket },
  delivery: Delivery,
  { log, count }: { log: ServiceLog; count: (fate: DeliveryFate) => void },
): void {
  const record = async (fate: DeliveryFate, act: () => Promise<void>) => {
    count(fate);
    try {
      await act();
    } catch (error) {
      log.error({ err: error, fate }, "the fate of an answer could not be recorded");
    }
  };

  exchange.onEnd((end) => {
    if (end === "cut") {
      void record("lost", delivery.lost);
      return;
    }
    const recorded = record("delivered", delivery.delivered);
    onReset(socket, resetWindowMs, () => {
      void recorded.then(() => record("bounced", delivery.bounced));
    });
  });
}
