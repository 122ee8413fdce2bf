import type { Transaction } from "../../../chain/chain.ts";
import { calldataGas } from "../../../chain/fees.ts";
import { type Contract, createTransactions } from "../../on-chain/batch-transactions.ts";
import type { SettleCall } from "../../on-chain/settling.ts";
import { approvalOf } from "../approval.ts";
import { encodeForward, encodeSettle, encodeSettleBatch } from "./permit2-calls.ts";

/*
 * Gas limits. What a limit leaves over is not paid for, but running out reverts everything in the transaction. So they let
 * the code at every payer's address burn all it may, PULL_GAS (250,000), which is also what the token and Permit2 have.
 */

/** `settlePermit2`, calldata aside. 130,000 are used, and 155,000 for a recipient that has nothing yet. */
const settleGas = 550_000n;

/** What an approval by EIP-2612 that is submitted with a payment takes on top: 38,000 are used with USDC. */
const approvalGas = 80_000n;

/** `settlePermit2Batch` without its payments: as above, since the last pull must leave room for the payouts. */
const batchGas = 550_000n;

/** A payment in a batch: PULL_GAS, its balance checks and its event. */
const batchPaymentGas = 300_000n;

/** `forwardReceivedWithPermit2`, calldata aside, with what the payer's wallet takes to check its signature. */
const forwardGas = 450_000n;

const approvalGasOf = ({ payment }: SettleCall) => (approvalOf(payment) === undefined ? 0n : approvalGas);

/** `settlePermit2` for one payment, else `settlePermit2Batch`, by either scheme and route. */
export const { transaction: settleTransaction, count: countBatch } = createTransactions((one) => ({
  alone: (call, network) => ({ to: network.facilitatorContract, data: encodeSettle(call, network) }),
  aloneGas: settleGas + approvalGasOf(one),
  batch: {
    encode: (_asset, calls, network) => encodeSettleBatch(calls, network),
    gas: batchGas,
    paymentGas: (call) => batchPaymentGas + approvalGasOf(call),
  },
}));

/** The transaction that pays out what a payment brought to the contract that others had submitted. */
export function forwardTransaction(call: SettleCall, { facilitatorContract: to }: Contract): Transaction {
  const data = encodeForward(call);
  return { to, data, gas: forwardGas + calldataGas(data) };
}

/** What a plain payment uses that is settled alone, for a recipient that has nothing yet. */
export const usualSettle = { gas: 155_000n, bytes: 676 };
export const usualForwardGas = 170_000n;
