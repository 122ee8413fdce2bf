import { quantity, readQuantity } from "../../chain/rpc/read-hex.ts";
import { encodeIsValidSignature } from "../../chain/views.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  transferTopic,
} from "../../methods/exact-eip3009/on-chain/events.ts";
import { methodOf } from "../../methods/methods.ts";
import { addressWord, type Hex, keccak256Text } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { membersOf } from "../../util/json.ts";
import type { CapturedChain } from "./capture.ts";
import type { ReadableChain } from "./readable-chain.ts";

/** What a payment is judged by, of the state of a chain at a block. */
export type CapturedState = Pick<
  CapturedChain,
  "payerBalance" | "payerHasCode" | "walletAccepts" | "authorizationUsed" | "payerBlacklisted" | "assetPaused"
>;

type StateReader = Pick<ReadableChain, "network" | "asset" | "ask">;

/** Reads the state at a block; undefined where the node does not have it any more. */
export async function readState(
  { network, asset, ask }: StateReader,
  { payment }: PaymentRequest,
  block: bigint,
): Promise<CapturedState | undefined> {
  const tag = quantity(block);
  const call = async (to: string, data: string): Promise<Hex | undefined> => {
    const { result } = await ask("eth_call", { to, data }, tag);
    // Otherwise a revert: the contract refuses, or lacks the function.
    return typeof result === "string" && result.startsWith("0x") ? (result as Hex) : undefined;
  };
  const isTrue = (answer: Hex | undefined) =>
    answer !== undefined && answer !== "0x" && BigInt(answer) === 1n;
  const { payer: from, nonce, signature } = payment;
  const digest = methodOf(payment).digester(asset, network.chainId)(payment);
  const code = await ask("eth_getCode", from, tag);
  const payerHasCode = typeof code.result === "string" && code.result !== "0x";
  const [balance, used, blacklisted, paused, wallet] = await Promise.all([
    call(asset.address, `0x70a08231${addressWord(from)}`),
    call(asset.address, `0xe94a0102${addressWord(from)}${nonce.slice(2)}`),
    // A token without a blacklist has none on it.
    call(asset.address, `0xfe575a87${addressWord(from)}`),
    call(asset.address, "0x5c975abb"),
    payerHasCode ? call(from, encodeIsValidSignature(digest, signature)) : undefined,
  ]);
  if (balance === undefined || balance === "0x" || used === undefined || code.error !== undefined) {
    return undefined;
  }
  return {
    payerBalance: BigInt(balance).toString(),
    payerHasCode,
    walletAccepts: payerHasCode ? (wallet?.startsWith("0x1626ba7e") ?? false) : null,
    authorizationUsed: isTrue(used),
    payerBlacklisted: isTrue(blacklisted),
    assetPaused: isTrue(paused),
  };
}

const blacklistTopics = ["Blacklisted(address)", "UnBlacklisted(address)"].map(keccak256Text);
const pauseTopics = ["Pause()", "Unpause()"].map(keccak256Text);

/**
 * Works out the state at a block from that at a later one, by what the token has logged in between. The payer's code, and
 * what it says of the signature, are those of the later block.
 *
 * @returns undefined when the node does not give the logs
 */
export async function rewindState(
  { asset, ask }: StateReader,
  { payment: { payer: from, nonce } }: PaymentRequest,
  { to: wanted, at: known, state }: { to: bigint; at: bigint; state: CapturedState },
): Promise<CapturedState | undefined> {
  if (known <= wanted) return state;
  const payer = `0x${addressWord(from)}`;
  const range = { address: asset.address, fromBlock: quantity(wanted + 1n), toBlock: quantity(known) };
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
    ...state,
    payerBalance: `${BigInt(state.payerBalance) + sum(sent) - sum(received)}`,
    authorizationUsed: uses.length > 0 ? false : state.authorizationUsed,
    payerBlacklisted: before(listings, blacklistTopics[0], state.payerBlacklisted),
    assetPaused: before(pauses, pauseTopics[0], state.assetPaused),
  };
}
