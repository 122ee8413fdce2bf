import type { Receipt } from "../../chain/logs-and-receipts.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { authorizationKey, decodeEvents, type PaymentEvent, readUses, type TransferEvent } from "./events.ts";

/** A transfer of an asset to the facilitator contract. */
export type ReceivedTransfer = {
  logIndex: number;
  from: Address;
  value: bigint;
  /** Of the authorization of EIP-3009 that brought it; undefined when none did. In lower case. */
  authorizationNonce: Hex | undefined;
  /** Whether it was part of a settlement, which sent the value on. */
  settled: boolean;
};

/**
 * Reads what a transaction brought to the facilitator contract, and by which authorizations. Of what Permit2 moves nothing says so
 * but the contract, right after each transfer: its event settles the last such transfer before it.
 */
export function readReceivedTransfers(
  receipt: Receipt,
  asset: Address,
  facilitatorContract: Address,
): readonly ReceivedTransfer[] {
  const events = decodeEvents(receipt);
  const uses = new Map(readUses(events).map(({ use, transfer }) => [transfer.logIndex, use]));
  const settled = new Set(
    events.flatMap((event) =>
      event.name === "Settled" && sameAddress(event.emitter, facilitatorContract)
        ? authorizationKey(event)
        : [],
    ),
  );
  const settledByPermit2 = new Set<number>();
  for (const settlement of events) {
    if (settlement.name !== "Permit2Settled" || !sameAddress(settlement.emitter, facilitatorContract))
      continue;
    const brought = events.findLast(
      (event) =>
        isTransferTo(event, settlement.token, facilitatorContract) &&
        event.logIndex < settlement.logIndex &&
        event.from === settlement.payer &&
        event.value === settlement.value,
    );
    if (brought !== undefined) settledByPermit2.add(brought.logIndex);
  }
  return events.flatMap((event) => {
    if (!isTransferTo(event, asset, facilitatorContract)) return [];
    const { logIndex, from, value } = event;
    const use = uses.get(logIndex);
    return {
      logIndex,
      from,
      value,
      authorizationNonce: use?.authorizationNonce,
      settled: use === undefined ? settledByPermit2.has(logIndex) : settled.has(authorizationKey(use)),
    };
  });
}

/** Whether an event is a transfer of the asset to the facilitator contract. */
export function isTransferTo(
  event: PaymentEvent,
  asset: Address,
  facilitatorContract: Address,
): event is TransferEvent {
  return (
    event.name === "Transfer" &&
    sameAddress(event.emitter, asset) &&
    sameAddress(event.to, facilitatorContract)
  );
}
