import type { EventLog, Receipt } from "../../../chain/logs-and-receipts.ts";
import {
  type Address,
  addressWord,
  type Hex,
  keccak256Text,
  sameAddress,
  wordAt,
} from "../../../protocol/hex.ts";
import type { WithdrawalLogs } from "../../on-chain/settling.ts";
import { batchSettlementAddress } from "../contracts.ts";

/* The settlement contract's events that prove what a transaction did; success alone proves nothing. */

/** The first topic of each event. */
export const channelTopics = {
  Deposited: keccak256Text("Deposited(bytes32,address,uint128,uint128)"),
  Claimed: keccak256Text("Claimed(bytes32,address,uint128,uint128)"),
  Settled: keccak256Text("Settled(address,address,address,uint128)"),
  Refunded: keccak256Text("Refunded(bytes32,address,uint128)"),
  WithdrawInitiated: keccak256Text("WithdrawInitiated(bytes32,uint128,uint40)"),
} as const;

export type ChannelEventName = keyof typeof channelTopics;

/** An event. `key` is the channel's id, or for `Settled` the receiver and the token. `amounts` are the words of its data. */
export type ChannelEvent = { name: ChannelEventName; key: string; amounts: readonly [bigint, bigint] };

/** The names of the words in each event's data. */
const dataNames: Readonly<Record<ChannelEventName, readonly string[]>> = {
  Deposited: ["amount", "newBalance"],
  Claimed: ["claimAmount", "newTotalClaimed"],
  Settled: ["amount"],
  Refunded: ["amount"],
  WithdrawInitiated: ["amount", "finalizeAfter"],
};

const names = Object.keys(channelTopics) as ChannelEventName[];

export const receiverKey = (receiver: Address, token: Address) =>
  `0x${addressWord(receiver)} 0x${addressWord(token)}`;

/** Decodes a log as one of these events; undefined if it is another. */
export function readChannelEvent({ address, topics, data }: EventLog): ChannelEvent | undefined {
  const [topic, ...indexed] = topics.map((one) => one.toLowerCase());
  const name = names.find((one) => channelTopics[one] === topic);
  if (name === undefined || !sameAddress(address, batchSettlementAddress)) return undefined;
  const amounts = [0, 1].map((index) => BigInt(`0x${wordAt(data, index) ?? "0"}`));
  if (data.length !== 2 + 64 * dataNames[name].length) return undefined;
  const key = name === "Settled" ? indexed.slice(0, 2).join(" ") : (indexed[0] ?? "");
  return { name, key, amounts: [amounts[0] ?? 0n, amounts[1] ?? 0n] };
}

/** An event with named fields, for display. */
export function namedChannelEvent({ name, key, amounts }: ChannelEvent): Readonly<Record<string, string>> {
  const [receiver = "", token] = key.split(" ").map((word) => `0x${word.slice(-40)}`);
  const about = token === undefined ? { channelId: key } : { receiver, token };
  return { ...about, ...Object.fromEntries(dataNames[name].map((one, at) => [one, `${amounts[at] ?? 0n}`])) };
}

/** The events of a transaction, in order; empty if it reverted. */
export function channelEvents({ succeeded, logs }: Receipt): readonly ChannelEvent[] {
  return succeeded ? logs.flatMap((log) => readChannelEvent(log) ?? []) : [];
}

/** The log filter for one event of a channel. */
export function channelLogs(name: ChannelEventName, channelId: Hex) {
  return { address: batchSettlementAddress, topics: [channelTopics[name], channelId] as const };
}

/** {@link OnChannels.withdrawals} for all channels, because only the ledger knows which are ours. */
export const withdrawalLogs: WithdrawalLogs = {
  filter: { address: batchSettlementAddress, topics: [channelTopics.WithdrawInitiated] },
  read(log) {
    const event = readChannelEvent(log);
    if (event?.name !== "WithdrawInitiated") return undefined;
    const [amount, endsAt] = event.amounts;
    return { channel: `0x${event.key.slice(2)}`, amount, endsAt: Number(endsAt) };
  },
};
