import type { NetworkConfig } from "../config/serve-config.ts";
import { type Address, type Hex, quantity, readQuantity, uintWord } from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";
import type { Head } from "./rpc/calls.ts";
import type { RpcAnswer, RpcCall } from "./rpc/rpc.ts";
import { callViews, readViews, selector } from "./views.ts";

/*
 * The operators' bids per gas: first with {@link estimateFees}, then, after {@link isReplacementDue}, an eighth more each time
 * with {@link raiseFees}, up to {@link feeCap}.
 */

/** The fees that a transaction offers per gas, in wei (EIP-1559). */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };

/** Nodes take a replacement that pays at least a tenth more; an eighth leaves room for their rounding. */
const raise = { by: 9n, of: 8n };

/** Block times without a receipt after which a transaction is replaced by one that pays more. */
const replaceAfterBlocks = 6;

/** Where the network names none, in wei: nodes of the OP stack leave out of their blocks what tips less. */
const opStackTip = 1_000_000n;

/** Asks for the tip, in wei per gas. One object, so that what is asked at the same time is asked once. */
export const tipCall: RpcCall = { method: "eth_maxPriorityFeePerGas", params: [] };

/** Blocks whose fees an approval may have been signed by: some 40 seconds of a rollup. */
const recentBlocks = 20;

/** Asks for the base fees and the median tips of the last blocks. */
export const feeHistoryCall: RpcCall = {
  method: "eth_feeHistory",
  params: [quantity(recentBlocks), "latest", [50]],
};

/** The highest base fee of the last blocks, and the highest of their median tips, in wei per gas; 0 if a node does not say. */
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

/** The node's word on the tip, within its bounds; without one, the usual. */
export function readTip(answer: RpcAnswer | undefined, network: NetworkConfig): bigint {
  return boundTip(readQuantity(answer?.result) ?? 0n, network);
}

/** The tip below which nodes may leave a transaction out: the usual one, or what the node suggests, where that is less. */
export function leastTip(answer: RpcAnswer | undefined, network: NetworkConfig): bigint {
  const usual = usualTip(network);
  return smaller(readQuantity(answer?.result) ?? usual, usual);
}

/** The tip that a node suggests, but not below the usual one, nor above what may be paid per gas at all. */
export function boundTip(suggested: bigint, network: NetworkConfig): bigint {
  return smaller(larger(suggested, usualTip(network)), network.maxFeePerGas);
}

function usualTip({ usualTip }: NetworkConfig): bigint {
  return usualTip === undefined ? opStackTip : BigInt(usualTip);
}

/**
 * Fees that hold while the base fee doubles, which takes at least six full blocks, and never above {@link feeCap}. Where
 * that is below the base fee, the transaction waits until the base fee has come down.
 */
export function estimateFees(head: Head, network: NetworkConfig, tip = usualTip(network)): Fees {
  const maxFeePerGas = smaller(2n * head.baseFeePerGas + tip, feeCap(network, "settle"));
  return { maxFeePerGas, maxPriorityFeePerGas: smaller(tip, maxFeePerGas) };
}

/**
 * The most that is offered per gas, in wei. Anything but a no-op leaves room for a {@link raise}: a no-op that replaces
 * it must be possible at the network's `maxFeePerGas`.
 */
export function feeCap({ maxFeePerGas }: NetworkConfig, kind: "settle" | "forward" | "noop"): bigint {
  return kind === "noop" ? maxFeePerGas : (maxFeePerGas * raise.of) / raise.by;
}

/** Returns true if a transaction that is not mined has waited long enough to be replaced. */
export function isReplacementDue({ blockTimeMs }: NetworkConfig, waitedMs: number): boolean {
  return waitedMs >= blockTimeMs * replaceAfterBlocks;
}

/** Fees that replace `old`, and at least what the chain asks now; undefined above the cap. */
export function raiseFees(old: Fees, current: Fees, cap: bigint): Fees | undefined {
  const raised = (fee: bigint) => (fee * raise.by + raise.of - 1n) / raise.of;
  const maxFeePerGas = larger(raised(old.maxFeePerGas), current.maxFeePerGas);
  const tip = larger(raised(old.maxPriorityFeePerGas), current.maxPriorityFeePerGas);
  if (maxFeePerGas > cap) return undefined;
  return { maxFeePerGas, maxPriorityFeePerGas: smaller(tip, maxFeePerGas) };
}

/** The price per gas with such fees while the base fee stays the same, in wei. */
export function pricePerGas(head: Head, { maxFeePerGas, maxPriorityFeePerGas }: Fees): bigint {
  return smaller(head.baseFeePerGas + maxPriorityFeePerGas, maxFeePerGas);
}

/** The present cost of an amount of gas, in wei. */
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
 * The rollups' charge for the data of a transaction, on top of its gas: base and optimism write it to Ethereum.
 */

/** Tells that fee, where there is one. */
const gasPriceOracle: Address = "0x420000000000000000000000000000000000000F";
const l1FeeUpperBound = selector("getL1FeeUpperBound(uint256)");

/** A signed transaction without its calldata, in bytes; more than enough. */
const envelopeBytes = 200;

/** Asks for the data fee of a transaction. */
export function dataFeeCall(calldataBytes: number): RpcCall {
  const size = BigInt(calldataBytes + envelopeBytes);
  return callViews([{ target: gasPriceOracle, data: `${l1FeeUpperBound}${uintWord(size)}` }], 200_000);
}

/** Reads the answer: in wei, at most; 0 where nothing is charged for that, and on local chains. */
export function readDataFee(result: unknown): bigint | undefined {
  const views = readViews(result, 1);
  return views && BigInt(views.results[0]?.word ?? 0);
}

/** A transaction that does nothing; twice as much where the account itself has code (EIP-7702). */
const noopGas = 42_000n;

/** A transaction of an account to itself that does nothing but take a txNonce. */
export function noopTransaction(account: Address): { to: Address; data: Hex; gas: bigint } {
  return { to: account, data: "0x", gas: noopGas };
}

/** Per byte of calldata, by the floor price of EIP-7623, which is above what is charged otherwise. */
const gasPerZeroByte = 10n;
export const gasPerByte = 40n;

const zeroDigit = "0".charCodeAt(0);

/** The cost of a transaction's calldata, in gas. */
export function calldataGas(data: Hex): bigint {
  let zeros = 0;
  for (let index = 2; index < data.length; index += 2) {
    if (data.charCodeAt(index) === zeroDigit && data.charCodeAt(index + 1) === zeroDigit) zeros++;
  }
  const others = data.length / 2 - 1 - zeros;
  return BigInt(zeros) * gasPerZeroByte + BigInt(others) * gasPerByte;
}
