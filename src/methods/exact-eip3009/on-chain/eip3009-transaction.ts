import type { Transaction } from "../../../chain/chain.ts";
import { calldataGas, gasPerByte } from "../../../chain/fees.ts";
import type { NetworkConfig } from "../../../config/serve-config.ts";
import type { Address, Hex } from "../../../protocol/hex.ts";
import {
  goesStraight,
  isErc6492,
  unwrapErc6492,
  type WalletDeployment,
} from "../../../protocol/signed-payment.ts";
import type { BatchLimits, SettleCall } from "../../on-chain/settling.ts";
import {
  encodeDeployAndSettle,
  encodeForwardReceived,
  encodeSettle,
  encodeSettleBatch,
  encodeTransfer,
  encodeTransferBatch,
  encodeTransferDirect,
} from "./eip3009-calls.ts";
import { transferGas } from "./straight-transfers.ts";

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

/**
 * A payment that goes straight to where it was signed to, calldata aside: 21,000 for the transaction, and what the token
 * may use. 86,000 are used.
 */
const straightGas = 21_000n + transferGas;

/**
 * A wallet that is deployed first: DEPLOY_GAS (1,000,000) for its factory, the 64th that a call leaves behind, 32,000 for the account
 * that calls it, and what the contract wants to see beyond that. What a plain wallet takes in all: 401,000.
 */
const deployGas = 1_150_000n;

/** `settleBatch` without its payments: as above, since the last pull must leave room for the payouts. */
const batchGas = 500_000n;

/**
 * `transferBatch` without its payments: 21,000 for the transaction, some 10,000 up to the first payment, and what the
 * contract wants to see beyond PULL_GAS for the last.
 */
const straightBatchGas = 60_000n;

/** A payment in a batch: PULL_GAS, and its balance check or its event. 51,000 to 82,000 are used. */
const batchPaymentGas = 275_000n;

/**
 * `forwardReceived`, calldata aside. 156,000 are used, and what the payer's wallet takes to check its signature, which was
 * PULL_GAS at most when it paid.
 */
const forwardGas = 450_000n;

/** The most that one transaction may ask for (EIP-7825). */
const transactionGasCap = 2n ** 24n;

/** What is to be known of a network. */
type Contract = Pick<NetworkConfig, "facilitatorContract">;

/** How payments are settled that may share a transaction. */
type Route = {
  /** What is called for one alone, and the gas that it may need, calldata aside. */
  alone(call: SettleCall, network: Contract): Omit<Transaction, "gas">;
  aloneGas: bigint;
  /** The same for several: of the facilitator contract, with gas for all of them together, and for each. */
  batch: {
    encode(asset: Address, calls: readonly SettleCall[]): Hex;
    gas: bigint;
    paymentGas: bigint;
  };
};

const throughContract: Route = {
  alone: (call, { facilitatorContract: to }) => ({ to, data: encodeSettle(call) }),
  aloneGas: settleGas,
  batch: { encode: encodeSettleBatch, gas: batchGas, paymentGas: batchPaymentGas },
};

const straight: Route = {
  alone: ({ payment }) => ({ to: payment.asset, data: encodeTransfer(payment) }),
  aloneGas: straightGas,
  batch: { encode: encodeTransferBatch, gas: straightBatchGas, paymentGas: batchPaymentGas },
};

/** What goes straight to where it was signed to does so by a call of the token; the rest goes through the contract. */
function routeOf({ payment }: SettleCall, network: Contract): Route {
  return goesStraight(payment, network) ? straight : throughContract;
}

/** The wallet of the payer is deployed first, in the same transaction. */
function deploying(deployment: WalletDeployment): Pick<Route, "alone" | "aloneGas"> {
  return {
    alone(call, network) {
      const { facilitatorContract: to } = network;
      const settlement = goesStraight(call.payment, network)
        ? encodeTransferDirect(call)
        : encodeSettle(call);
      return { to, data: encodeDeployAndSettle(call, deployment, settlement) };
    },
    aloneGas: deployGas + settleGas,
  };
}

/** The transaction that pays the given calls, of one asset and one route. */
export function settleTransaction(calls: readonly SettleCall[], network: Contract): Transaction {
  const [first, ...others] = calls;
  if (first === undefined) throw new RangeError("a settle transaction needs at least one payment");
  if (others.length === 0) return settleAlone(first, network);
  const { batch } = routeOf(first, network);
  const data = batch.encode(first.payment.asset, calls);
  const gas = batch.gas + BigInt(calls.length) * batch.paymentGas + calldataGas(data);
  return { to: network.facilitatorContract, data, gas: gas < transactionGasCap ? gas : transactionGasCap };
}

const settledAlone = new WeakMap<SettleCall, Transaction>();

/** Encoded once for each payment: it is simulated, priced and counted by it. */
function settleAlone(call: SettleCall, network: Contract): Transaction {
  let known = settledAlone.get(call);
  if (known === undefined) {
    const deployment = unwrapErc6492(call.payment.signature);
    const { alone, aloneGas } = deployment === undefined ? routeOf(call, network) : deploying(deployment);
    const { to, data } = alone(call, network);
    known = { to, data, gas: aloneGas + calldataGas(data) };
    settledAlone.set(call, known);
  }
  return known;
}

/** The most calldata of one transaction, in bytes: nodes take no transaction of more than 128 KiB in all. */
const mostCalldata = 64 * 1024;

/** What a payment adds to a batch besides the calldata that settles it alone: its group and its place in it. */
const batchPaymentBytes = 4 * 32;

/**
 * How many of the given payments, of one asset and one route, from the first on, fit in one transaction: by number, by
 * calldata, by the gas that they may need, which is not cut down to what a transaction may ask for, and by cost. 0 where
 * the first alone costs too much.
 */
export function countBatch(calls: readonly SettleCall[], network: Contract, limits: BatchLimits): number {
  const [first] = calls;
  if (first === undefined) return 0;
  const { batch } = routeOf(first, network);
  const { aloneGas } = isErc6492(first.payment.signature)
    ? { aloneGas: deployGas + settleGas }
    : routeOf(first, network);
  let bytes = 0;
  let gas = batch.gas;
  for (const [index, call] of calls.entries()) {
    const alone = settleAlone(call, network);
    bytes += alone.data.length / 2 + batchPaymentBytes;
    gas += batch.paymentGas + alone.gas - aloneGas + BigInt(batchPaymentBytes) * gasPerByte;
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
