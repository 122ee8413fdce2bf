import type { ChainQueries } from "../../chain/chain.ts";
import { type LogFilter, type Receipt, readReceiptsAt } from "../../chain/logs-and-receipts.ts";
import { selector, type ViewCall } from "../../chain/views.ts";
import { type Address, addressWord, type Hex, sameAddress } from "../../protocol/hex.ts";
import {
  type AuthorizationRef,
  authorizationKey,
  decodeEvents,
  forwardedTopic,
  type PaymentEvent,
  permit2ForwardedTopic,
  permit2SettledTopic,
  readUses,
  settledTopic,
  type TransferEvent,
} from "./events.ts";
import {
  amountOf,
  type ForwardLimit,
  type Payout,
  type Search,
  type SettleCall,
  type Settling,
} from "./settling.ts";
import { amount, askFacts } from "./state-facts.ts";

/** The value that a payment brings to the facilitator contract, and the recipient that it is forwarded to. */
export type ReceivedPayment = {
  asset: Address;
  payer: Address;
  authorizationNonce: Hex;
  value: bigint;
  recipient: Address;
};

export function receivedOf({ payment, recipient, amount }: SettleCall): ReceivedPayment {
  const { asset, payer, nonce: authorizationNonce } = payment;
  return { asset, payer, authorizationNonce, value: amountOf({ payment, amount }), recipient };
}

/** A key for maps and sets that identifies a payout, regardless of the case of its hex. */
export function payoutKey(payout: AuthorizationRef & { recipient: Address; value: bigint }): string {
  return `${authorizationKey(payout)} ${payout.recipient.toLowerCase()} ${payout.value}`;
}

/** The facilitator contract's events for paying a recipient, by the name of the second one. */
const topicsOf = {
  Forwarded: [settledTopic, forwardedTopic],
  Permit2Forwarded: [permit2SettledTopic, permit2ForwardedTopic],
} as const;

type Forwarding = keyof typeof topicsOf;

/**
 * Returns true if a receipt proves that this payment's stranded value was paid out. The proof is the facilitator contract's
 * event, and the token's own `Transfer` of the value from the contract to the recipient.
 */
export function provesForwarding(
  forwarding: Forwarding,
  receipt: Receipt,
  facilitatorContract: Address,
  { asset: token, ...expected }: ReceivedPayment,
): boolean {
  const payout = payoutKey({ token, ...expected });
  const events = decodeEvents(receipt);
  return (
    events.some(
      (event) =>
        event.name === forwarding &&
        sameAddress(event.emitter, facilitatorContract) &&
        payoutKey(event) === payout,
    ) &&
    events.some(
      (event) =>
        event.name === "Transfer" &&
        sameAddress(event.emitter, token) &&
        sameAddress(event.from, facilitatorContract) &&
        sameAddress(event.to, expected.recipient) &&
        event.value === expected.value,
    )
  );
}

const forwardLimit = selector("forwardLimit(address)");
const availableToForward = selector("availableToForward(address)");

/** The calls that read the forward limit of an asset, and the part of it that is available now. */
export function forwardLimitOf(target: Address, asset: Address): [ViewCall, ViewCall] {
  const view = (selected: Hex): ViewCall => ({ target, data: `${selected}${addressWord(asset)}` });
  return [view(forwardLimit), view(availableToForward)];
}

/** {@link Recovery.limit}: the contract has one limit for each token, shared by all payment methods. */
export function readForwardLimit(
  { reader, network: { facilitatorContract } }: Pick<ChainQueries, "reader" | "network">,
  asset: Address,
): Promise<ForwardLimit> {
  const [limit, available] = forwardLimitOf(facilitatorContract, asset);
  return askFacts(reader, { limit: amount(limit), available: amount(available) }, undefined);
}

/** {@link Settling.findPayout} for payouts by the facilitator contract, which are our own transactions. */
export function findContractPayout(
  forwarding: Forwarding,
  prove: Settling["prove"],
  chain: ChainQueries,
  search: Search,
): Promise<Payout | null> {
  const { network } = chain;
  const { facilitatorContract: address } = network;
  const { asset, payer, nonce } = search.payment;
  const topics = [topicsOf[forwarding], `0x${addressWord(asset)}`, `0x${addressWord(payer)}`, nonce] as const;
  return findPayoutAt(chain, search, { address, topics }, (receipt) => {
    if (prove(receipt, network).find(search)?.settled === true) return "settled";
    return provesForwarding(forwarding, receipt, address, receivedOf(search)) ? "forwarded" : undefined;
  });
}

/** Finds the first transaction with a matching log whose receipt proves a payout. */
export async function findPayoutAt(
  { reader, readLogs }: Pick<ChainQueries, "reader" | "readLogs">,
  { fromBlock, toBlock, id: about }: Search,
  filter: LogFilter,
  kindOf: (receipt: Receipt) => Payout["kind"] | undefined,
): Promise<Payout | null> {
  for await (const logs of readLogs([{ ...filter, about }], fromBlock, toBlock)) {
    for (const receipt of await readReceiptsAt(reader, logs)) {
      const { hash, blockNumber, blockHash } = receipt;
      const kind = kindOf(receipt);
      if (kind !== undefined) return { kind, hash, blockNumber, blockHash };
    }
  }
  return null;
}

/** A transfer of an asset to the facilitator contract. */
export type ReceivedTransfer = {
  logIndex: number;
  from: Address;
  value: bigint;
  /** The nonce of the EIP-3009 authorization that brought it, in lower case; undefined if none did. */
  authorizationNonce: Hex | undefined;
  /** True if it was part of a settlement, which paid out the value. */
  settled: boolean;
};

/**
 * Reads the transfers of a transaction to the facilitator contract, and the authorizations that made them. For transfers by
 * Permit2, the only evidence is the contract's own event: it settles the last matching transfer before it.
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
