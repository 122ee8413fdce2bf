import type { Transaction } from "../../../chain/chain.ts";
import { calldataGas, gasPerByte } from "../../../chain/fees.ts";
import { goesStraight, type SignedPayment } from "../../../protocol/signed-payment.ts";
import { exactEip3009Recovery } from "../../exact-eip3009/on-chain/eip3009-settling.ts";
import { type Contract, createTransactions } from "../../on-chain/batch-transactions.ts";
import type { Recovery, SettleCall, Settling, Usage } from "../../on-chain/settling.ts";
import { createIsUsed } from "../../on-chain/use-reader.ts";
import { approvalOf } from "../approval.ts";
import { approvalTransactionOf } from "../approval-transaction.ts";
import { exactPermit2, uptoPermit2 } from "../permit2-payload.ts";
import { encodeForward, encodeSettle, encodeSettleBatch, settlesSeveral } from "./permit2-calls.ts";
import { findPayout, provesForwarding, readSettlements } from "./permit2-proof.ts";
import { allowanceOf, explainBefore, explainRevert, nonceUse, stateOf } from "./permit2-state.ts";
import { prepare, transactionBefore } from "./prepare-approval.ts";
import { findDirectSubmission } from "./submissions.ts";

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
const { transaction: settleTransaction, count: countBatch } = createTransactions((one) => ({
  alone: (call, network) => ({ to: network.facilitatorContract, data: encodeSettle(call, network) }),
  aloneGas: settleGas + approvalGasOf(one),
  batch: {
    encode: (_asset, calls, network) => encodeSettleBatch(calls, network),
    gas: batchGas,
    paymentGas: (call) => batchPaymentGas + approvalGasOf(call),
  },
}));

/** The transaction that pays out what a payment brought to the contract that others had submitted. */
function forwardTransaction(call: SettleCall, { facilitatorContract: to }: Contract): Transaction {
  const data = encodeForward(call);
  return { to, data, gas: forwardGas + calldataGas(data) };
}

const usualBytes = 676;
const usualCalldataGas = BigInt(usualBytes) * gasPerByte;

/** What a plain payment takes that is settled alone, for a recipient that has nothing yet; and one that is forwarded. */
const usualSettle: Usage = { gas: 155_000n, gasLimit: settleGas + usualCalldataGas, bytes: usualBytes };
const usualForward: Usage = { gas: 170_000n, gasLimit: forwardGas + usualCalldataGas, bytes: usualBytes };

/** `forwardReceivedWithPermit2`, for payments of scheme “exact” that others have submitted to the proxy. */
const permit2Recovery: Recovery = {
  transaction: forwardTransaction,
  usual: usualForward,
  proves: provesForwarding,
  // The contract has one limit for each token, however its payments came.
  limit: exactEip3009Recovery.limit,
  findDirectSubmission,
};

const bringsApproval = (payment: SignedPayment) =>
  approvalOf(payment) !== undefined || approvalTransactionOf(payment) !== undefined;

/** Of both schemes: they have one space of nonces. */
const isUsed = createIsUsed(nonceUse);

/**
 * Payments by Permit2, by the facilitator contract, which calls the proxy of x402: straight to where they were signed to, or
 * through the contract.
 */
function createPermit2Settling(method: string, recovery?: Recovery): Settling {
  return {
    method,

    transaction: settleTransaction,
    batchKey: ({ payment }, network) =>
      `${payment.asset.toLowerCase()} ${goesStraight(payment, network) ? "straight" : "through the contract"}`,
    count: countBatch,
    settlesSeveral,
    usual: usualSettle,

    prove: readSettlements,
    findPayout,

    stateOf,
    explain: explainRevert,
    prepare,
    before: transactionBefore,
    explainBefore,
    // An approval that comes with a payment is for its limit, or more, and takes the place of the one before: payments under
    // way that bring one of the same nonce share it.
    bounds: (payment) => [bringsApproval(payment) ? payment.limit : allowanceOf(payment)],
    isUsed,

    ...(recovery !== undefined && { recovery }),
  };
}

export const exactPermit2Settling = createPermit2Settling(exactPermit2, permit2Recovery);

/** Nobody but the facilitator contract can submit one of these: there is nothing to recover. */
export const uptoPermit2Settling = createPermit2Settling(uptoPermit2);
