import { calldataGas } from "../../../chain/fees.ts";
import type { Hex } from "../../../protocol/hex.ts";
import { goesStraight, unwrapErc6492, type WalletDeployment } from "../../../protocol/signed-payment.ts";
import { createTransactions, type Route } from "../../on-chain/batch-transactions.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
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
const paymentGas = () => 275_000n;

/**
 * `forwardReceived`, calldata aside. 156,000 are used, and what the payer's wallet takes to check its signature, which was
 * PULL_GAS at most when it paid.
 */
const forwardGas = 450_000n;

const throughContract: Route = {
  alone: (call, { facilitatorContract: to }) => ({ to, data: encodeSettle(call) }),
  aloneGas: settleGas,
  batch: { encode: encodeSettleBatch, gas: batchGas, paymentGas },
};

const straight: Route = {
  alone: ({ payment }) => ({ to: payment.asset, data: encodeTransfer(payment) }),
  aloneGas: straightGas,
  batch: { encode: encodeTransferBatch, gas: straightBatchGas, paymentGas },
};

/** The wallet of the payer is deployed first, in the same transaction, which is this payment's alone. */
function deploying(deployment: WalletDeployment, rest: Route): Route {
  return {
    ...rest,
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

/** What goes straight to where it was signed to does so by a call of the token; the rest goes through the contract. */
export const { transaction: settleTransaction, count: countBatch } = createTransactions((call, network) => {
  const route = goesStraight(call.payment, network) ? straight : throughContract;
  const deployment = unwrapErc6492(call.payment.signature);
  return deployment === undefined ? route : deploying(deployment, route);
});

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
