import type { ChainQueries } from "../../../chain/chain.ts";
import { balanceOf, selector, type ViewCall } from "../../../chain/views.ts";
import { type Address, addressWord, type Hex, isBytes, quantity, wordAt } from "../../../protocol/hex.ts";
import { batchSettlementAddress } from "../contracts.ts";
import { encodeMulticall } from "./channel-calls.ts";

/** The contract's state of a channel. Amounts in the token's smallest unit; `withdrawRequestedAt` in unix seconds, 0 without one. */
export type ChannelState = {
  balance: bigint;
  totalClaimed: bigint;
  withdrawRequestedAt: number;
  refundNonce: bigint;
};

/** The state as answers have it. */
export function stateJson(channelId: Hex, state: ChannelState) {
  return {
    channelId,
    balance: `${state.balance}`,
    totalClaimed: `${state.totalClaimed}`,
    withdrawRequestedAt: state.withdrawRequestedAt,
    refundNonce: `${state.refundNonce}`,
  };
}

const selectors = {
  channels: selector("channels(bytes32)"),
  pendingWithdrawals: selector("pendingWithdrawals(bytes32)"),
  refundNonce: selector("refundNonce(bytes32)"),
  receivers: selector("receivers(address,address)"),
  allowance: selector("allowance(address,address)"),
} as const;

type Asked = { reader: ChainQueries["reader"]; about?: Hex | undefined; block?: bigint | undefined };

/**
 * Calls views of the settlement contract at one block, the newest unless one is named: each gives its words.
 *
 * @throws UndeterminedError when the chain did not say
 */
async function askContract(
  { reader, about, block }: Asked,
  calls: readonly Hex[],
  others: readonly ViewCall[] = [],
): Promise<{ views: readonly (readonly bigint[])[]; others: readonly bigint[] }> {
  const at = block === undefined ? "latest" : quantity(block);
  const views = [{ target: batchSettlementAddress, data: encodeMulticall(calls) }, ...others];
  const answers = await reader.ask(
    views.map(({ target: to, data }) => ({ method: "eth_call", params: [{ to, data }, at], about })),
  );
  const [all, ...rest] = answers;
  return {
    views: reader.expect("the state of channels", all, (result) => readMulticall(result, calls.length)),
    others: rest.map((answer) =>
      reader.expect("the state of a token", answer, (result) =>
        isBytes(result) && result.length >= 66 ? BigInt(result.slice(0, 66)) : undefined,
      ),
    ),
  };
}

/** The words of each result of `multicall`; undefined where it is none of so many. */
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
  const { views } = await askContract(asked, ids.flatMap(channelViews));
  return ids.map((_, index) => toState(views.slice(3 * index, 3 * index + 3)));
}

/** Reads a channel. */
export async function readChannel(asked: Asked, id: Hex): Promise<ChannelState> {
  const { views } = await askContract(asked, channelViews(id));
  return toState(views);
}

/** The same with the payer's balance of the token, and what a contract may take of it. */
export async function readPayersChannel(
  asked: Asked,
  id: Hex,
  { token, payer, spender }: { token: Address; payer: Address; spender?: Address | undefined },
): Promise<{ state: ChannelState; balance: bigint; allowance: bigint | undefined }> {
  const others = [balanceOf(token, payer)];
  if (spender !== undefined) others.push(allowanceOf(token, payer, spender));
  const { views, others: amounts } = await askContract(asked, channelViews(id), others);
  return { state: toState(views), balance: amounts[0] ?? 0n, allowance: amounts[1] };
}

function allowanceOf(target: Address, owner: Address, spender: Address): ViewCall {
  return { target, data: `${selectors.allowance}${addressWord(owner)}${addressWord(spender)}` };
}

/** What was claimed for a receiver in all, and how much of it was paid out. */
export async function readReceiver(
  asked: Asked,
  receiver: Address,
  token: Address,
): Promise<{ claimed: bigint; settled: bigint }> {
  const call: Hex = `${selectors.receivers}${addressWord(receiver)}${addressWord(token)}`;
  const { views } = await askContract(asked, [call]);
  const [[claimed = 0n, settled = 0n] = []] = views;
  return { claimed, settled };
}

/**
 * The block to read what answers say at: the newest confirmed one, or a later one that holds what was just settled. Undefined for the
 * newest of all.
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
