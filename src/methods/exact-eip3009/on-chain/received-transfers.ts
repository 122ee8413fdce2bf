import type { ChainQueries } from "../../../chain/chain.ts";
import {
  type LogFilter,
  type MinedLog,
  type Receipt,
  readReceiptsAt,
} from "../../../chain/logs-and-receipts.ts";
import { type Address, addressWord, type Hex, sameAddress } from "../../../protocol/hex.ts";
import {
  authorizationCanceledTopic,
  authorizationKey,
  authorizationUsedTopic,
  decodeEvent,
  decodeEvents,
  type PaymentEvent,
  readUses,
} from "../../on-chain/events.ts";
import type { Search, TransferPlace } from "../../on-chain/settling.ts";
import { wasUsedBy } from "../../on-chain/use-reader.ts";
import { authorizationUse } from "./eip3009-state.ts";

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
): event is Extract<PaymentEvent, { name: "Transfer" }> {
  return (
    event.name === "Transfer" &&
    sameAddress(event.emitter, asset) &&
    sameAddress(event.to, facilitatorContract)
  );
}

/**
 * {@link Recovery.findDirectSubmission}: proven by `AuthorizationUsed` of that very authorization, the `Transfer` of that
 * very value right after it, both of the token, and no `Settled` for it.
 */
export async function findDirectSubmission(
  { reader, readLogs, network: { facilitatorContract } }: ChainQueries,
  { payment, fromBlock, toBlock, id: about }: Search,
): Promise<TransferPlace | "cancelled" | null> {
  const { asset, payer, nonce: authorizationNonce, limit: value } = payment;

  async function findEnd(topics: LogFilter["topics"]): Promise<MinedLog | undefined> {
    for await (const [log] of readLogs([{ address: asset, topics, about }], fromBlock, toBlock)) {
      if (log !== undefined) return log;
    }
    return undefined;
  }

  const used = await wasUsedBy(reader, authorizationUse, { ...payment, id: about }, toBlock);
  if (used === false) return null;

  // The token emits one of the two, once.
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    `0x${addressWord(payer)}` as const,
    authorizationNonce,
  ];
  const end = await findEnd(topics);
  if (end === undefined) {
    if (used === undefined) return null;
    throw reader.undetermined(
      `an authorization is used by block ${toBlock}, and no log since ${fromBlock} says how`,
    );
  }
  if (decodeEvent(end)?.name === "AuthorizationCanceled") return "cancelled";

  const [receipt] = await readReceiptsAt(reader, [end]);
  if (receipt === undefined) throw reader.undetermined("the receipt of a log is missing");
  const nonce = authorizationNonce.toLowerCase();
  const received = readReceivedTransfers(receipt, asset, facilitatorContract).find(
    (transfer) =>
      sameAddress(transfer.from, payer) && transfer.authorizationNonce === nonce && transfer.value === value,
  );
  if (received === undefined || received.settled) return null;
  const { transactionHash, blockNumber, blockHash } = end;
  return { transactionHash, logIndex: received.logIndex, blockNumber, blockHash };
}
