import type { PaymentMessage } from "./payment-message.ts";

/** Tells which request a message of a payment belongs to, given all its messages in their order. */
export function createRequestIds(): { of(message: PaymentMessage): string | null } {
  const open = new Set<string>();

  function onlyOpen(): string | null {
    const [only, ...others] = open;
    return only !== undefined && others.length === 0 ? only : null;
  }

  return {
    of(message) {
      if ("checks" in message) return message.requestId;
      if ("endpoint" in message || "faultId" in message) return onlyOpen();
      if (!("requestId" in message)) return null;
      const { requestId } = message;
      if ("result" in message) open.delete(requestId);
      else if ("operation" in message) open.add(requestId);
      return requestId;
    },
  };
}
