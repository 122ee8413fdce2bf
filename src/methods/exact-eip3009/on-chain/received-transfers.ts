import type { ChainQueries, Receipt } from "../../../chain/chain.ts";
import type { LogPlace, MinedLog } from "../../../chain/log-reader.ts";
import { readReceiptsAt } from "../../../chain/receipt-reader.ts";
import { type Address, addressWord, type Hex, sameAddress } from "../../../protocol/hex.ts";
import type { SettleCall, TransferPlace } from "../../on-chain/settling.ts";
import {
  authorizationKey,
  decodeEvent,
  decodeEvents,
  forwardedTopic,
  type PaymentEvent,
  settledTopic,
  transferTopic,
} from "./events.ts";

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

/** What a payment brings to the facilitator contract, and to whom it goes on from there. */
export type ReceivedPayment = {
  asset: Address;
  payer: Address;
  authorizationNonce: Hex;
  value: bigint;
  recipient: Address;
  /** As in {@link SettleCall}. */
  id?: Hex;
};

/** What a payment brings once its authorization is used. */
export function receivedOf({ payment, recipient, id }: SettleCall): ReceivedPayment {
  const { asset, payer, nonce: authorizationNonce, limit: value } = payment;
  return { asset, payer, authorizationNonce, value, recipient, ...(id !== undefined && { id }) };
}

/** Value that reached the facilitator contract outside of a settlement and was not paid out by a recovery. */
export type StrandedTransfer = TransferPlace & {
  /** The payer, or the sender of tokens that came without a payment. */
  from: Address;
  value: bigint;
  /** Of the payment that brought it; undefined when none did. */
  nonce: Hex | undefined;
};

/**
 * Every transfer of an asset to the facilitator contract in the given blocks, both ends included, that is neither part of a
 * settlement nor paid out by a recovery within these blocks, lowest block first. What a rescue took out is still listed:
 * tokens do not say which of them are moved.
 */
export async function findStrandedTransfers(
  { reader, readLogs, network: { facilitatorContract } }: ChainQueries,
  asset: Address,
  fromBlock: bigint,
  toBlock: bigint,
): Promise<readonly StrandedTransfer[]> {
  const contractTopic: Hex = `0x${addressWord(facilitatorContract)}`;

  const assetTopic: Hex = `0x${addressWord(asset)}`;
  const filters = [
    { address: asset, topics: [transferTopic, null, contractTopic] },
    { address: facilitatorContract, topics: [[settledTopic, forwardedTopic], assetTopic] },
  ];
  const stranded: StrandedTransfer[] = [];
  const forwarded = new Set<string>();

  for await (const logs of readLogs(filters, fromBlock, toBlock)) {
    for (const log of logs) {
      const event = decodeEvent(log);
      if (event?.name === "Forwarded") forwarded.add(authorizationKey(event));
    }
    // Nearly all of what comes in is settled: only of the rest are receipts worth reading.
    const receipts = await readReceiptsAt(reader, findUnsettled(logs, asset, facilitatorContract));
    for (const receipt of receipts) {
      const { hash: transactionHash, blockNumber, blockHash } = receipt;
      for (const received of readReceivedTransfers(receipt, asset, facilitatorContract)) {
        const { settled, authorizationNonce: nonce, ...transfer } = received;
        // Transfers of 0 need no allowance: anyone can send them from any account.
        if (settled || transfer.value === 0n) continue;
        stranded.push({ transactionHash, blockNumber, blockHash, ...transfer, nonce });
      }
    }
  }
  return stranded
    .filter(
      ({ from: payer, nonce }) =>
        nonce === undefined ||
        !forwarded.has(authorizationKey({ token: asset, payer, authorizationNonce: nonce })),
    )
    .sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
}

/** The transactions that brought in more than they settled. */
function findUnsettled(logs: readonly MinedLog[], asset: Hex, facilitatorContract: Hex): readonly LogPlace[] {
  const balances = new Map<string, { place: LogPlace; left: number }>();
  const count = (place: LogPlace, payer: Hex, value: bigint, by: 1 | -1) => {
    const key = `${place.transactionHash.toLowerCase()} ${payer} ${value}`;
    balances.set(key, { place, left: (balances.get(key)?.left ?? 0) + by });
  };
  for (const log of logs) {
    const event = decodeEvent(log);
    if (event?.name === "Settled") count(log, event.payer, event.value, -1);
    else if (event && isTransferTo(event, asset, facilitatorContract) && event.value > 0n)
      count(log, event.from, event.value, 1);
  }
  const left = [...balances.values()].filter((balance) => balance.left > 0);
  return [...new Map(left.map(({ place }) => [place.transactionHash, place])).values()];
}
