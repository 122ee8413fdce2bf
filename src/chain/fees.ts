import type { NetworkConfig } from "../config/serve-config.ts";
import { type Address, type Hex, quantity, readQuantity, uintWord } from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";
import type { Head } from "./rpc/calls.ts";
import type { RpcAnswer, RpcCall } from "./rpc/rpc.ts";
import { callViews, readViews, selector } from "./views.ts";

/*
 * The operators' fees: {@link estimateFees} sets the first bid; each time {@link isReplacementDue}, {@link raiseFees}
 * raises it by an eighth, up to {@link feeCap}.
 */

/** The fees that a transaction offers per gas, in wei (EIP-1559). */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };

/** Nodes accept a replacement that pays at least a tenth more; an eighth leaves room for their rounding. */
const raise = { by: 9n, of: 8n };

/** A transaction without a receipt after this many block times is replaced by one that pays more. */
const replaceAfterBlocks = 6;

/** The usual tip if the network names none, in wei; OP-stack nodes leave transactions with a lower tip out. */
const opStackTip = 1_000_000n;

/** Asks for the tip, in wei per gas. A shared object, so that concurrent requests send it once. */
export const tipCall: RpcCall = { method: "eth_maxPriorityFeePerGas", params: [] };

/** An approval may have been signed with the fees of any of these blocks; about 40 seconds on a rollup. */
const recentBlocks = 20;

/** Asks for the base fees and median tips of recent blocks. */
export const feeHistoryCall: RpcCall = {
  method: "eth_feeHistory",
  params: [quantity(recentBlocks), "latest", [50]],
};

/** Returns the highest base fee and the highest median tip of recent blocks, in wei per gas; 0 if the node does not say. */
export function readFeeHistory(answer: RpcAnswer | undefined): { baseFeePerGas: bigint; tip: bigint } {
  const { baseFeePerGas, reward } = membersOf(answer?.result);
  const fees = listOf(baseFeePerGas).map(readFee);
  const tips = listOf(reward).map((ofBlock) => readFee(listOf(ofBlock)[0]));
  return { baseFeePerGas: fees.reduce(larger, 0n), tip: tips.reduce(larger, 0n) };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function readFee(value: unknown): bigint {
  return readQuantity(value) ?? 0n;
}

/** Returns the tip that the node suggests, within its bounds; the usual one if it does not say. */
export function readTip(answer: RpcAnswer | undefined, network: NetworkConfig): bigint {
  return boundTip(readQuantity(answer?.result) ?? 0n, network);
}

/** Returns the tip below which nodes may leave a transaction out: the usual one, or the node's if that is lower. */
export function leastTip(answer: RpcAnswer | undefined, network: NetworkConfig): bigint {
  const usual = usualTip(network);
  return smaller(readQuantity(answer?.result) ?? usual, usual);
}

/** Raises a suggested tip to the usual one, and limits it to the network's `maxFeePerGas`. */
export function boundTip(suggested: bigint, network: NetworkConfig): bigint {
  return smaller(larger(suggested, usualTip(network)), network.maxFeePerGas);
}

function usualTip({ usualTip }: NetworkConfig): bigint {
  return usualTip === undefined ? opStackTip : BigInt(usualTip);
}

/**
 * Returns fees that are sufficient until the base fee has doubled, which takes at least six full blocks, and never
 * above {@link feeCap}. If the cap is below the base fee, the transaction waits until the base fee has come down.
 */
export function estimateFees(head: Head, network: NetworkConfig, tip = usualTip(network)): Fees {
  const maxFeePerGas = smaller(2n * head.baseFeePerGas + tip, feeCap(network, "settle"));
  return { maxFeePerGas, maxPriorityFeePerGas: smaller(tip, maxFeePerGas) };
}

/**
 * Returns the maximum offer per gas, in wei. For anything but a no-op it leaves room for a {@link raise}, so that a
 * no-op can still replace it at the network's `maxFeePerGas`.
 */
export function feeCap({ maxFeePerGas }: NetworkConfig, kind: "settle" | "forward" | "noop"): bigint {
  return kind === "noop" ? maxFeePerGas : (maxFeePerGas * raise.of) / raise.by;
}

/** Returns true if an unmined transaction has waited long enough to be replaced. */
export function isReplacementDue({ blockTimeMs }: NetworkConfig, waitedMs: number): boolean {
  return waitedMs >= blockTimeMs * replaceAfterBlocks;
}

/** Returns fees that replace `old` and are at least the current ones; undefined if they exceed the cap. */
export function raiseFees(old: Fees, current: Fees, cap: bigint): Fees | undefined {
  const raised = (fee: bigint) => (fee * raise.by + raise.of - 1n) / raise.of;
  const maxFeePerGas = larger(raised(old.maxFeePerGas), current.maxFeePerGas);
  const tip = larger(raised(old.maxPriorityFeePerGas), current.maxPriorityFeePerGas);
  if (maxFeePerGas > cap) return undefined;
  return { maxFeePerGas, maxPriorityFeePerGas: smaller(tip, maxFeePerGas) };
}

/** Returns the price per gas with these fees, in wei, as long as the base fee does not change. */
export function pricePerGas(head: Head, { maxFeePerGas, maxPriorityFeePerGas }: Fees): bigint {
  return smaller(head.baseFeePerGas + maxPriorityFeePerGas, maxFeePerGas);
}

/** Returns the current cost of an amount of gas, in wei. */
export function usualCost(gas: bigint, head: Head, network: NetworkConfig, tip = usualTip(network)): bigint {
  return gas * pricePerGas(head, estimateFees(head, network, tip));
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/*
 * The charge of rollups for a transaction's data, on top of its gas: base and optimism publish it on Ethereum.
 */

/** The contract that reports this fee, on chains that have it. */
const gasPriceOracle: Address = "0x420000000000000000000000000000000000000F";
const l1FeeUpperBound = selector("getL1FeeUpperBound(uint256)");

/** The size of a signed transaction without its calldata, in bytes, rounded up generously. */
const envelopeBytes = 200;

/** Asks for the data fee of a transaction. */
export function dataFeeCall(calldataBytes: number): RpcCall {
  const size = BigInt(calldataBytes + envelopeBytes);
  return callViews([{ target: gasPriceOracle, data: `${l1FeeUpperBound}${uintWord(size)}` }], 200_000);
}

/** Parses an upper bound on the data fee, in wei; 0 on chains without one, such as local chains. */
export function readDataFee(result: unknown): bigint | undefined {
  const views = readViews(result, 1);
  return views && BigInt(views.results[0]?.word ?? 0);
}

/** The gas for a transaction that does nothing, doubled because the account may have code (EIP-7702). */
const noopGas = 42_000n;

/** Returns a transaction from an account to itself that does nothing but use up a txNonce. */
export function noopTransaction(account: Address): { to: Address; data: Hex; gas: bigint } {
  return { to: account, data: "0x", gas: noopGas };
}

/** Gas per byte of calldata, at the floor price of EIP-7623, which is above the standard price. */
const gasPerZeroByte = 10n;
export const gasPerByte = 40n;

const zeroDigit = "0".charCodeAt(0);

/** Returns the cost of a transaction's calldata, in gas. */
export function calldataGas(data: Hex): bigint {
  let zeros = 0;
  for (let index = 2; index < data.length; index += 2) {
    if (data.charCodeAt(index) === zeroDigit && data.charCodeAt(index + 1) === zeroDigit) zeros++;
  }
  const others = data.length / 2 - 1 - zeros;
  return BigInt(zeros) * gasPerZeroByte + BigInt(others) * gasPerByte;
}
