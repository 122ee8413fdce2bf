import { isWord, quantity, readQuantity } from "../../../chain/rpc/read-hex.ts";
import type { RpcAnswer } from "../../../chain/rpc/rpc.ts";
import type { ViewCall } from "../../../chain/view-calls.ts";
import { balanceOf, isBlacklisted, isPaused } from "../../../chain/views.ts";
import { addressWord, type Hex, keccak256Text } from "../../../protocol/hex.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import { membersOf } from "../../../util/json.ts";
import { authorizationCanceledTopic, authorizationUsedTopic, transferTopic } from "./events.ts";
import { authorizationStateOf } from "./views.ts";

/** A payment as its token knows it. */
export type KnownPayment = Pick<SignedPayment, "asset" | "payer" | "nonce">;

/** What a token says of a payer and of one of its payments. */
export type PayerState = {
  /** Used or cancelled, however long ago: a token does not tell these two apart. */
  used: boolean;
  /** In the token's smallest unit. */
  balance: bigint;
  payerBlacklisted: boolean;
  /** Whether all transfers of the token are stopped. */
  tokenPaused: boolean;
};

/** Asks a node one call; throws if it does not answer. */
type Ask = (method: string, ...params: readonly unknown[]) => Promise<RpcAnswer>;

/** What {@link payerStateOf} reads, in its order. */
export function payerViews({ asset, payer, nonce }: KnownPayment): ViewCall[] {
  return [
    authorizationStateOf(asset, payer, nonce),
    balanceOf(asset, payer),
    isBlacklisted(asset, payer),
    isPaused(asset),
  ];
}

/** The words that the views gave. A token without a blacklist, or a pause, has neither. */
export function payerStateOf(used: Hex, balance: Hex, blacklisted?: Hex, paused?: Hex): PayerState {
  return {
    used: isTrue(used),
    balance: BigInt(balance),
    payerBlacklisted: isTrue(blacklisted),
    tokenPaused: isTrue(paused),
  };
}

export function isTrue(word: Hex | undefined): boolean {
  return word !== undefined && BigInt(word) !== 0n;
}

/**
 * Asks a node for the state at a block, such as `latest`.
 *
 * @returns undefined where it does not say: it has forgotten that block, or the token is none
 */
export async function askPayerState(
  ask: Ask,
  payment: KnownPayment,
  block: string,
): Promise<PayerState | undefined> {
  const [used, balance, blacklisted, paused] = await Promise.all(
    payerViews(payment).map(async ({ target: to, data }) => {
      // Otherwise a revert: the contract refuses, or lacks the function.
      const { result } = await ask("eth_call", { to, data }, block);
      return isWord(result) ? result : undefined;
    }),
  );
  if (used === undefined || balance === undefined) return undefined;
  return payerStateOf(used, balance, blacklisted, paused);
}

const blacklistTopics = ["Blacklisted(address)", "UnBlacklisted(address)"].map(keccak256Text);
const pauseTopics = ["Pause()", "Unpause()"].map(keccak256Text);

/**
 * Works out the state at a block from that at a later one, by what the token has logged in between.
 *
 * @returns undefined when the node does not give the logs
 */
export async function rewindPayerState(
  ask: Ask,
  { asset, payer: account, nonce }: KnownPayment,
  { to: wanted, at: known, state }: { to: bigint; at: bigint; state: PayerState },
): Promise<PayerState | undefined> {
  if (known <= wanted) return state;
  const payer = `0x${addressWord(account)}`;
  const range = { address: asset, fromBlock: quantity(wanted + 1n), toBlock: quantity(known) };
  const logs = async (...topics: unknown[]): Promise<readonly unknown[] | undefined> => {
    const { result } = await ask("eth_getLogs", { ...range, topics });
    return Array.isArray(result) ? result : undefined;
  };
  const [sent, received, uses, listings, pauses] = await Promise.all([
    logs(transferTopic, payer),
    logs(transferTopic, null, payer),
    logs([authorizationUsedTopic, authorizationCanceledTopic], payer, nonce),
    logs(blacklistTopics, payer),
    logs(pauseTopics),
  ]);
  if (!sent || !received || !uses || !listings || !pauses) return undefined;
  const sum = (transfers: readonly unknown[]) =>
    transfers.reduce<bigint>((total, log) => total + (readQuantity(membersOf(log).data) ?? 0n), 0n);
  // Before the first event the opposite held.
  const before = (events: readonly unknown[], begins: Hex | undefined, now: boolean) => {
    const [first] = events;
    return first === undefined ? now : [membersOf(first).topics].flat()[0] !== begins;
  };
  return {
    balance: state.balance + sum(sent) - sum(received),
    used: uses.length > 0 ? false : state.used,
    payerBlacklisted: before(listings, blacklistTopics[0], state.payerBlacklisted),
    tokenPaused: before(pauses, pauseTopics[0], state.tokenPaused),
  };
}
