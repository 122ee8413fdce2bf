import type { NetworkConfig } from "../../config/network-config.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { Head } from "../../rpc/calls.ts";
import { encodeForwardReceived, encodeSettle, encodeSettleBatch } from "../contract/calldata.ts";
import type { SettleCall } from "../contract/calls.ts";

/*
 * Gas limits. What a limit leaves over is not paid for, but running out reverts everything in the transaction. So
 * they let the code at every payer's address burn all it may, PULL_GAS (250,000). In a batch they also cover the
 * second attempt that the contract makes when a recipient cannot be paid, unless a third of the payers burn as well.
 */

/**
 * `settle`, calldata aside: 21,000 for the transaction, some 20,000 up to the pull, 264,000 that the contract wants
 * to see for it (PULL_GAS and the 64th that a call leaves behind), then 162,000 for the payout. 108,000 are used, and
 * 125,000 for a recipient that has nothing yet.
 */
const settleGas = 500_000n;

/** `settleBatch` without its payments: as above, since the last pull must leave room for the payouts. */
const batchGas = 500_000n;

/** A payment in a batch: PULL_GAS, its balance check and its event. 51,000 to 82,000 are used. */
const batchPaymentGas = 275_000n;

/**
 * `forwardReceived`, calldata aside. 156,000 are used, and what the payer's wallet takes to check its signature, which was
 * PULL_GAS at most when it paid.
 */
const forwardGas = 450_000n;

/** A transaction that does nothing; twice as much where the account itself has code (EIP-7702). */
const noopGas = 42_000n;

/** The most that one transaction may ask for (EIP-7825). */
const transactionGasCap = 2n ** 24n;

/** Per byte of calldata, by the floor price of EIP-7623, which is above what is charged otherwise. */
const gasPerZeroByte = 10n;
const gasPerByte = 40n;

/** The part of a transaction that pays the given calls: `settle` for one, `settleBatch` for several of one asset. */
export function settleTransaction(calls: readonly SettleCall[]): { data: Hex; gas: bigint } {
  const [first, ...others] = calls;
  if (first === undefined) throw new RangeError("a settle transaction needs at least one payment");
  if (others.length === 0) return settleAlone(first);
  const data = encodeSettleBatch(first.asset, calls);
  const gas = batchGas + BigInt(calls.length) * batchPaymentGas + calldataGas(data);
  return { data, gas: gas < transactionGasCap ? gas : transactionGasCap };
}

const settledAlone = new WeakMap<SettleCall, { data: Hex; gas: bigint }>();

/** Encoded once for each payment: it is simulated, priced and counted by it. */
function settleAlone(call: SettleCall): { data: Hex; gas: bigint } {
  let known = settledAlone.get(call);
  if (known === undefined) {
    const data = encodeSettle(call);
    known = { data, gas: settleGas + calldataGas(data) };
    settledAlone.set(call, known);
  }
  return known;
}

/** The most calldata of one transaction, in bytes: nodes take no transaction of more than 128 KiB in all. */
const mostCalldata = 64 * 1024;

/** What a payment adds to a batch besides the calldata that settles it alone: its group and its place in it. */
const batchPaymentBytes = 4 * 32;

/** What a transaction may ask for in all. `cost` is its gas limit times what it offers per gas, in wei. */
export type BatchLimits = { maxPayments: number; maxFeePerGas: bigint; maxCost: bigint };

/**
 * How many of the given payments, from the first on, fit in one transaction: by number, by calldata, by the gas that
 * they may need, which is not cut down to what a transaction may ask for, and by cost. 0 where the first alone costs too
 * much.
 */
export function countBatch(calls: readonly SettleCall[], limits: BatchLimits): number {
  let bytes = 0;
  let gas = batchGas;
  for (const [index, call] of calls.entries()) {
    const alone = settleAlone(call);
    bytes += alone.data.length / 2 + batchPaymentBytes;
    gas += batchPaymentGas + alone.gas - settleGas + BigInt(batchPaymentBytes) * gasPerByte;
    const isAlone = index === 0;
    const cost = (isAlone ? alone.gas : gas) * limits.maxFeePerGas;
    const fits = isAlone || (bytes <= mostCalldata && gas <= transactionGasCap);
    if (index >= limits.maxPayments || !fits || cost > limits.maxCost) return index;
  }
  return calls.length;
}

/** The part of a transaction that pays out what an authorization brought to the contract by itself. */
export function forwardTransaction(call: SettleCall): { data: Hex; gas: bigint } {
  const data = encodeForwardReceived(call);
  return { data, gas: forwardGas + calldataGas(data) };
}

/** A transaction of an account to itself that does nothing but take a txNonce. */
export function noopTransaction(account: Address): { to: Address; data: Hex; gas: bigint } {
  return { to: account, data: "0x", gas: noopGas };
}

const zeroDigit = "0".charCodeAt(0);

function calldataGas(data: Hex): bigint {
  let zeros = 0;
  for (let index = 2; index < data.length; index += 2) {
    if (data.charCodeAt(index) === zeroDigit && data.charCodeAt(index + 1) === zeroDigit) zeros++;
  }
  const others = data.length / 2 - 1 - zeros;
  return BigInt(zeros) * gasPerZeroByte + BigInt(others) * gasPerByte;
}

/**
 * What a payment of USDC uses when it is settled alone, for a recipient that has nothing yet, in gas and in bytes of
 * calldata: see `contracts/test/snapshots/gas.json`. Settled together payments take half of that.
 */
export const usualSettleGas = 125_000n;
export const usualSettleBytes = 388;

/** The same of a payment that is forwarded. Its calldata is as long. */
export const usualForwardGas = 162_000n;

/** What a transaction offers per gas, in wei (EIP-1559). */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };

/**
 * The tip, in wei per gas. Polygon's nodes take nothing below 25 gwei; those of the OP stack leave out of their
 * blocks what tips less than 0.001 gwei.
 */
function usualTip(network: NetworkConfig): bigint {
  return network.name === "polygon" ? 30_000_000_000n : 1_000_000n;
}

/** The tip that a node suggests, but not below the usual one, nor above what may be paid per gas at all. */
export function boundTip(suggested: bigint, network: NetworkConfig): bigint {
  const usual = usualTip(network);
  const tip = suggested < usual ? usual : suggested;
  if (tip > network.maxFeePerGas) return network.maxFeePerGas;
  return tip;
}

/**
 * Fees that hold while the base fee doubles, which takes at least six full blocks, and never above {@link feeCap}. Where
 * that is below the base fee, the transaction waits until the base fee has come down.
 */
export function estimateFees(head: Head, network: NetworkConfig, tip = usualTip(network)): Fees {
  const wanted = 2n * head.baseFeePerGas + tip;
  const cap = feeCap(network, "settle");
  const maxFeePerGas = wanted < cap ? wanted : cap;
  return { maxFeePerGas, maxPriorityFeePerGas: tip < maxFeePerGas ? tip : maxFeePerGas };
}

/**
 * The most that is offered per gas for anything but a no-op, in wei: a no-op that replaces it has to offer an eighth
 * more, and must be possible at the network's `maxFeePerGas`.
 */
export function feeCap({ maxFeePerGas }: NetworkConfig, kind: "settle" | "forward" | "noop"): bigint {
  return kind === "noop" ? maxFeePerGas : (maxFeePerGas * 8n) / 9n;
}

/** What is paid per gas with such fees, as long as the base fee stays where it is, in wei. */
export function pricePerGas(head: Head, { maxFeePerGas, maxPriorityFeePerGas }: Fees): bigint {
  const wanted = head.baseFeePerGas + maxPriorityFeePerGas;
  return wanted < maxFeePerGas ? wanted : maxFeePerGas;
}

/** What the gas of one payment costs when it is settled alone, in wei. */
export function usualSettleCost(head: Head, network: NetworkConfig, tip = usualTip(network)): bigint {
  return usualSettleGas * pricePerGas(head, estimateFees(head, network, tip));
}
