import type { Receipt } from "../../../chain/chain.ts";
import { type Address, type Hex, sameAddress } from "../../../protocol/hex.ts";
import { authorizationKey, decodeEvents, type PaymentEvent } from "./events.ts";

/** A transfer of an asset to the facilitator contract. */
export type ReceivedTransfer = {
  logIndex: number;
  from: Address;
  value: bigint;
  /** Of the authorization that brought it; undefined when none did. In lower case. */
  authorizationNonce: Hex | undefined;
  /** Whether it was part of a settlement, which sent the value on. */
  settled: boolean;
};

/**
 * Reads what a transaction brought to the facilitator contract, and by which authorizations. The token emits
 * `AuthorizationUsed` and, with no call in between, the `Transfer`: a pair that stands next to each other belongs
 * together. An `AuthorizationCanceled` brings nothing, whatever stands behind it.
 */
export function readReceivedTransfers(
  receipt: Receipt,
  asset: Address,
  facilitatorContract: Address,
): readonly ReceivedTransfer[] {
  const events = decodeEvents(receipt);
  const byIndex = new Map(events.map((event) => [event.logIndex, event]));
  const settled = new Set(
    events.flatMap((event) =>
      event.name === "Settled" && sameAddress(event.emitter, facilitatorContract)
        ? authorizationKey(event)
        : [],
    ),
  );
  return events.flatMap((event) => {
    if (!isTransferTo(event, asset, facilitatorContract)) return [];
    const { logIndex, from, value } = event;
    const before = byIndex.get(logIndex - 1);
    const isUse =
      before?.name === "AuthorizationUsed" && sameAddress(before.emitter, asset) && before.payer === from;
    const authorizationNonce = isUse ? before.authorizationNonce : undefined;
    return {
      logIndex,
      from,
      value,
      authorizationNonce,
      settled: isUse && settled.has(authorizationKey(before)),
    };
  });
}

/** Whether an event is a transfer of the asset to the facilitator contract. */
export function isTransferTo(
  event: PaymentEvent,
  asset: Address,
  facilitatorContract: Address,
): event is Extract<PaymentEvent, { name: "Transfer" }> {
  return (
    event.name === "Transfer" &&
    sameAddress(event.emitter, asset) &&
    sameAddress(event.to, facilitatorContract)
  );
}
