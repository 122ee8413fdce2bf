import type { ChainQueries } from "../../../chain/chain.ts";
import { selector, type ViewCall } from "../../../chain/views.ts";
import { type Address, addressWord, type Hex, isBytes, quantity, wordAt } from "../../../protocol/hex.ts";
import type { ChannelState, ReceiverState } from "../channel-source.ts";
import { batchSettlementAddress } from "../contracts.ts";
import { encodeMulticall } from "./channel-calls.ts";

const selectors = {
  channels: selector("channels(bytes32)"),
  pendingWithdrawals: selector("pendingWithdrawals(bytes32)"),
  refundNonce: selector("refundNonce(bytes32)"),
  receivers: selector("receivers(address,address)"),
} as const;

/** The call that reads a channel's balance, which is the first word of the result. */
export function balanceIn(channelId: Hex): ViewCall {
  return { target: batchSettlementAddress, data: `${selectors.channels}${channelId.slice(2)}` };
}

type Asked = { reader: ChainQueries["reader"]; about?: Hex | undefined; block?: bigint | undefined };

/**
 * Calls views of the settlement contract at one block (default: the newest). Returns the words of each result.
 *
 * @throws UndeterminedError if the chain does not answer
 */
async function askContract(
  { reader, about, block }: Asked,
  calls: readonly Hex[],
): Promise<readonly (readonly bigint[])[]> {
  const at = block === undefined ? "latest" : quantity(block);
  const call = { to: batchSettlementAddress, data: encodeMulticall(calls) };
  const [answer] = await reader.ask([{ method: "eth_call", params: [call, at], about }]);
  return reader.expect("the state of channels", answer, (result) => readMulticall(result, calls.length));
}

/** The words of each result of `multicall`; undefined if it does not have `count` results. */
function readMulticall(result: unknown, count: number): bigint[][] | undefined {
  if (!isBytes(result)) return undefined;
  const word = (index: number) => wordAt(result, index);
  const numberAt = (index: number) => Number(BigInt(`0x${word(index) ?? "0"}`));
  if (numberAt(1) !== count) return undefined;
  const results = Array.from({ length: count }, (_, index) => {
    const at = 2 + numberAt(2 + index) / 32;
    const words = Array.from({ length: numberAt(at) / 32 }, (_one, position) => word(at + 1 + position));
    return words.flatMap((one) => (one === undefined ? [] : BigInt(`0x${one}`)));
  });
  return results.every(({ length }) => length > 0) ? results : undefined;
}

const channelViews = (id: Hex): Hex[] =>
  [selectors.channels, selectors.pendingWithdrawals, selectors.refundNonce].map(
    (view): Hex => `${view}${id.slice(2)}`,
  );

function toState([channel = [], pending = [], nonce = []]: readonly (readonly bigint[])[]): ChannelState {
  const [balance = 0n, totalClaimed = 0n] = channel;
  return {
    balance,
    totalClaimed,
    withdrawRequestedAt: Number(pending[1] ?? 0n),
    refundNonce: nonce[0] ?? 0n,
  };
}

/** Reads channels, in the given order. */
export async function readChannels(asked: Asked, ids: readonly Hex[]): Promise<readonly ChannelState[]> {
  const views = await askContract(asked, ids.flatMap(channelViews));
  return ids.map((_, index) => toState(views.slice(3 * index, 3 * index + 3)));
}

export async function readChannel(asked: Asked, id: Hex): Promise<ChannelState> {
  const views = await askContract(asked, channelViews(id));
  return toState(views);
}

/** Reads the totals that were claimed for a receiver and paid out to it. */
export async function readReceiver(asked: Asked, receiver: Address, token: Address): Promise<ReceiverState> {
  const call: Hex = `${selectors.receivers}${addressWord(receiver)}${addressWord(token)}`;
  const views = await askContract(asked, [call]);
  const [[claimed = 0n, settled = 0n] = []] = views;
  return { claimed, settled };
}

/**
 * The block at which to read state for responses: the newest confirmed one, or the later block of what was just settled.
 * Undefined means the newest block.
 */
export async function confirmedBlock(
  { network, head }: Pick<ChainQueries, "network" | "head">,
  settledIn?: bigint,
): Promise<bigint | undefined> {
  if (network.confirmations === 1 && settledIn === undefined) return undefined;
  const depth = BigInt(network.confirmations - 1);
  const { number } = await head();
  const confirmed = number > depth ? number - depth : 0n;
  return settledIn !== undefined && settledIn > confirmed ? settledIn : confirmed;
}
