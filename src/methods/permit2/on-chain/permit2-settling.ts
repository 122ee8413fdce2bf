import { goesStraight, type SignedPayment } from "../../../protocol/signed-payment.ts";
import { exactEip3009Recovery } from "../../exact-eip3009/on-chain/eip3009-settling.ts";
import type { Recovery, Settling } from "../../on-chain/settling.ts";
import { createIsUsed } from "../../on-chain/use-reader.ts";
import { approvalOf } from "../approval.ts";
import { approvalTransactionOf } from "../approval-transaction.ts";
import { exactPermit2, uptoPermit2 } from "../permit2-payload.ts";
import { settlesSeveral } from "./permit2-calls.ts";
import { findPayout, provesForwarding, readSettlements } from "./permit2-proof.ts";
import { allowanceOf, explainBefore, explainRevert, nonceUse, stateOf } from "./permit2-state.ts";
import {
  countBatch,
  forwardTransaction,
  settleTransaction,
  usualForwardGas,
  usualSettle,
} from "./permit2-transaction.ts";
import { prepare, transactionBefore } from "./prepare-approval.ts";
import { findDirectSubmission } from "./submissions.ts";

/** `forwardReceivedWithPermit2`, for payments of scheme “exact” that others have submitted to the proxy. */
const permit2Recovery: Recovery = {
  transaction: forwardTransaction,
  usualGas: usualForwardGas,
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
