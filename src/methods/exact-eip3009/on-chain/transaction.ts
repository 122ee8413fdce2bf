import { calldataGas, gasPerByte } from "../../../chain/fees.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { BatchLimits, SettleCall } from "../../on-chain/settling.ts";
import { encodeForwardReceived, encodeSettle, encodeSettleBatch } from "./calldata.ts";

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

/** The most that one transaction may ask for (EIP-7825). */
const transactionGasCap = 2n ** 24n;

/** The part of a transaction that pays the given calls: `settle` for one, `settleBatch` for several of one asset. */
export function settleTransaction(calls: readonly SettleCall[]): { data: Hex; gas: bigint } {
  const [first, ...others] = calls;
  if (first === undefined) throw new RangeError("a settle transaction needs at least one payment");
  if (others.length === 0) return settleAlone(first);
  const data = encodeSettleBatch(first.payment.asset, calls);
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

/**
 * What a payment of USDC uses when it is settled alone, for a recipient that has nothing yet, in gas and in bytes of
 * calldata: see `contracts/test/snapshots/gas.json`. Settled together payments take half of that.
 */
export const usualSettleGas = 125_000n;
export const usualSettleBytes = 388;

/** The same of a payment that is forwarded. Its calldata is as long. */
export const usualForwardGas = 162_000n;
