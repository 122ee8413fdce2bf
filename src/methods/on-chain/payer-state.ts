import { type LogFilter, readLog } from "../../chain/logs-and-receipts.ts";
import type { AskNode } from "../../chain/rpc/calls.ts";
import { balanceOf, isBlacklisted, isPaused, isTrue } from "../../chain/views.ts";
import {
  type Address,
  addressWord,
  type Hex,
  isBytes32,
  keccak256Text,
  quantity,
  readQuantity,
} from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { maxUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import type { TokenState } from "../exact-eip3009/on-chain/eip3009-state.ts";
import type { NextTransaction } from "../permit2/approval-transaction.ts";
import { allowanceOf, nextApprovalOf } from "../permit2/on-chain/permit2-state.ts";
import { permit2Address } from "../permit2/permit.ts";
import { transferTopic } from "./events.ts";
import { isOfPermit2, type KnownPayment, noncesOf } from "./nonces.ts";

/** A payment as the token of a chain would know it, whatever token it names. */
export function paymentIn(payment: KnownPayment, { address: asset }: Pick<Asset, "address">): KnownPayment {
  return { ...payment, asset, nonceSpace: isOfPermit2(payment) ? payment.nonceSpace : asset };
}

/** What can keep a payment from settling that a payer may know of. */
export type PayerState = TokenState & {
  /** How much Permit2 may take of the payer's tokens; undefined where the payment needs no approval. */
  allowance?: bigint | undefined;
};

/**
 * Asks a node for the state at a block, such as `latest`.
 *
 * @returns undefined where it does not say: it has forgotten that block, or the token is none
 */
export async function askPayerState(
  ask: AskNode,
  payment: KnownPayment,
  block: string,
): Promise<PayerState | undefined> {
  const { asset, payer } = payment;
  const { view, isUsed } = noncesOf(payment);
  const isPermit = isOfPermit2(payment);
  const views = [view, balanceOf(asset, payer), isBlacklisted(asset, payer), isPaused(asset)];
  const [used, balance, blacklisted, paused, allowance] = await Promise.all(
    [...views, ...(isPermit ? [allowanceOf(payment)] : [])].map(async ({ target: to, data }) => {
      // Otherwise a revert: the contract refuses, or lacks the function.
      const { result } = await ask("eth_call", { to, data }, block);
      return isBytes32(result) ? result : undefined;
    }),
  );
  if (used === undefined || balance === undefined || (isPermit && allowance === undefined)) return undefined;
  return {
    used: isUsed(used),
    balance: BigInt(balance),
    // A token without a blacklist, or a pause, has neither.
    payerBlacklisted: isTrue(blacklisted),
    tokenPaused: isTrue(paused),
    ...(allowance !== undefined && { allowance: BigInt(allowance) }),
  };
}

/** Asks a node for the payer's next nonce at a token, for an approval by EIP-2612; 0 where the token has none. */
export async function askNextApproval(ask: AskNode, of: { asset: Address; payer: Address }): Promise<bigint> {
  const { target: to, data } = nextApprovalOf(of);
  const { result } = await ask("eth_call", { to, data }, "latest");
  return isBytes32(result) ? BigInt(result) : 0n;
}

const blacklistTopics = ["Blacklisted(address)", "UnBlacklisted(address)"].map(keccak256Text);
const pauseTopics = ["Pause()", "Unpause()"].map(keccak256Text);
const approvalTopic = keccak256Text("Approval(address,address,uint256)");

/**
 * Works out the state at a block from that at a later one, by what has been logged in between.
 *
 * @returns undefined when the node does not give the logs, or the payer has approved Permit2 in between
 */
export async function rewindPayerState(
  { ask, facilitatorContract }: { ask: AskNode; facilitatorContract: Address },
  payment: KnownPayment,
  { to: wanted, at: known, state }: { to: bigint; at: bigint; state: PayerState },
): Promise<PayerState | undefined> {
  if (known <= wanted) return state;
  const { asset, payer: account } = payment;
  const payer: Hex = `0x${addressWord(account)}`;
  const range = { fromBlock: quantity(wanted + 1n), toBlock: quantity(known) };
  const logs = async (address: Address, topics: LogFilter["topics"]) => {
    const { result } = await ask("eth_getLogs", { ...range, address, topics });
    return Array.isArray(result) ? (result as readonly unknown[]) : undefined;
  };
  const { ends, isEnd } = noncesOf(payment, facilitatorContract);
  const [sent, received, listings, pauses, approvals, ...found] = await Promise.all([
    logs(asset, [transferTopic, payer]),
    logs(asset, [transferTopic, null, payer]),
    logs(asset, [blacklistTopics, payer]),
    logs(asset, [pauseTopics]),
    isOfPermit2(payment) ? logs(asset, [approvalTopic, payer, `0x${addressWord(permit2Address)}`]) : [],
    ...ends.map(({ address, topics }) => logs(address, topics)),
  ]);
  if (!sent || !received || !listings || !pauses || !approvals || found.includes(undefined)) return undefined;
  if (approvals.length > 0) return undefined;
  const uses = found
    .flatMap((list) => list ?? [])
    .filter((log) => {
      const read = readLog(log);
      return read !== undefined && isEnd(read);
    });
  const sum = (transfers: readonly unknown[]) =>
    transfers.reduce<bigint>((total, log) => total + (readQuantity(membersOf(log).data) ?? 0n), 0n);
  // Before the first event the opposite held.
  const before = (events: readonly unknown[], begins: Hex | undefined, now: boolean) => {
    const [first] = events;
    return first === undefined ? now : [membersOf(first).topics].flat()[0] !== begins;
  };
  const { allowance } = state;
  // What was sent without Permit2 counts too: of an approval that is used up, more may seem to have been there.
  const most = allowance === undefined ? undefined : allowance + sum(sent);
  const isTooMuch = most !== undefined && most > maxUint256;
  return {
    balance: state.balance + sum(sent) - sum(received),
    used: uses.length > 0 ? false : state.used,
    payerBlacklisted: before(listings, blacklistTopics[0], state.payerBlacklisted),
    tokenPaused: before(pauses, pauseTopics[0], state.tokenPaused),
    ...(most !== undefined && { allowance: isTooMuch ? maxUint256 : most }),
  };
}

/**
 * Asks a node what an account's next transaction says of itself, for an approval that is one; the fees are for the moment, in
 * wei per gas, and leave room for the base fee to double.
 */
export async function askNextTransaction(ask: AskNode, payer: Address): Promise<NextTransaction> {
  const [count, block, tip] = await Promise.all([
    ask("eth_getTransactionCount", payer, "latest"),
    ask("eth_getBlockByNumber", "latest", false),
    ask("eth_maxPriorityFeePerGas"),
  ]);
  const maxPriorityFeePerGas = readQuantity(tip.result) ?? 0n;
  const baseFee = readQuantity(membersOf(block.result).baseFeePerGas) ?? 0n;
  const nonce = Number(readQuantity(count.result) ?? 0n);
  return { nonce, maxPriorityFeePerGas, maxFeePerGas: 2n * baseFee + maxPriorityFeePerGas };
}
