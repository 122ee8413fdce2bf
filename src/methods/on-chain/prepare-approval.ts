import type { Chain } from "../../chain/chain.ts";
import { askViews } from "../../chain/chain-reader.ts";
import { leastTip, tipCall } from "../../chain/fees.ts";
import {
  type Head,
  headCall,
  readHead,
  readSafeInteger,
  transactionCountCall,
} from "../../chain/rpc/calls.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import { recoverSigner, rememberSigners } from "../../chain/signing/recover-signer.ts";
import { callViews, readViews, viewGas } from "../../chain/views.ts";
import { type Invalid, invalid } from "../../protocol/catalogue.ts";
import type { Address } from "../../protocol/hex.ts";
import { type ForeignTransaction, readSignedTransaction } from "../../protocol/signed-transaction.ts";
import { type Approval, approvalOf, checkApproval, checkDeadline, withoutApproval } from "../approval.ts";
import {
  type ApprovalTransaction,
  approvalTransactionOf,
  broughtApproval,
  checkTransaction,
  ofTransaction,
  transactionRefusals,
} from "../approval-transaction.ts";
import { allowanceOf } from "./allowance.ts";
import { amountOf, type PayerTransaction, type Plan, type SettleCall } from "./settling.ts";

/** The refusals of a payer's transaction that need a chain; web pages with the fixtures do not load them. */
const chainRefusals = {
  tipTooLow: (tip: bigint, least: bigint) =>
    invalid(
      "approval_transaction_not_sent",
      `${ofTransaction} offers a tip of ${tip} wei per gas, and blocks ask for ${least} at the moment`,
    ),
  gasMoneyMissing: (payer: Address, has: bigint, needed: bigint) =>
    invalid(
      "approval_gas_missing",
      `The payer ${payer} has ${has} wei, and the approval in ${ofTransaction} may cost ${needed}; the facilitator pays for at most 70,000 gas, once per token, or for none`,
      "Let the payer approve Permit2 with gas money of its own, then send the same payment again",
    ),
};

/**
 * Drops the approval that came with a payment unless it is needed: the network must support it, and the current allowance
 * must be too small. An unneeded EIP-2612 approval would break the payer's other payments, because it sets the allowance to
 * this payment's amount; an unneeded approval transaction would waste gas.
 */
export async function prepare(
  chain: Chain,
  call: SettleCall,
  isUnderWay = async () => false,
): Promise<SettleCall | Invalid> {
  const { payment } = call;
  const { approval, transaction } = broughtApproval(payment, chain.network);
  if (approval !== undefined) return preparePermit(chain, call, approval);
  if (transaction !== undefined) return prepareTransaction(chain, call, transaction, isUnderWay);
  return { ...call, payment: withoutApproval(payment) };
}

/** Cached, because a payment that waits for its approval is prepared several times per block. */
const recoverOnce = rememberSigners(recoverSigner, 1_000);

async function preparePermit(
  chain: Chain,
  call: SettleCall,
  approval: Approval | "malformed",
): Promise<SettleCall | Invalid> {
  const { payment } = call;
  const wrong = checkApproval(approval, payment);
  if (wrong !== undefined) return wrong;
  const [{ timestamp }, isShort] = await Promise.all([chain.head(), isAllowanceShort(chain, call)]);
  if (approval === "malformed") return { ...call, payment: withoutApproval(payment) };
  const isUsed = isShort || chain.network.strictness === "reference";
  const tooLate = isUsed ? checkDeadline(approval, payment, timestamp) : undefined;
  return tooLate ?? { ...call, payment: withoutApproval(payment, isShort ? "approval" : undefined) };
}

async function prepareTransaction(
  chain: Chain,
  call: SettleCall,
  approval: ApprovalTransaction | "malformed",
  isUnderWay: () => Promise<boolean>,
): Promise<SettleCall | Invalid> {
  const { payment } = call;
  const { network } = chain;
  const transaction = checkTransaction(approval, payment, network, recoverOnce);
  if ("reason" in transaction) return transaction;
  const { next, head, tip, isShort } = await askStanding(chain, call);
  // Nodes may run the calls of one request in any order. If the transaction is mined in between, the nonce may already be
  // new while the allowance is still old, so the allowance is read again.
  const isNext = transaction.nonce === next;
  if (!isShort || (!isNext && !(await isAllowanceShort(chain, call))))
    return { ...call, payment: withoutApproval(payment) };
  if (!isNext) return transactionRefusals.otherNonce(transaction.nonce, next);
  const tooLow = findLowFee(transaction, { head, tip, network });
  if (tooLow !== undefined && !(await isUnderWay())) return tooLow;
  return { ...call, payment: withoutApproval(payment, "approvalTransaction") };
}

/** Refuses a transaction whose fee is too low for blocks to include it. */
function findLowFee(
  { maxFeePerGas, maxPriorityFeePerGas }: ForeignTransaction,
  { head, tip, network }: { head: Head; tip: RpcAnswer | undefined; network: Chain["network"] },
): Invalid | undefined {
  // The base fee grows by at most an eighth per block.
  const leastFee = (head.baseFeePerGas * 9n) / 8n;
  if (maxFeePerGas < leastFee) return transactionRefusals.feeTooLow(maxFeePerGas, leastFee);
  const least = leastTip(tip, network);
  return maxPriorityFeePerGas < least ? chainRefusals.tipTooLow(maxPriorityFeePerGas, least) : undefined;
}

/** Reads everything that decides if the payer's transaction can be sent, in one request. */
async function askStanding({ reader }: Chain, call: SettleCall) {
  const allowance = callViews([allowanceOf(call.payment)], viewGas);
  const calls = [
    transactionCountCall(call.payment.payer),
    headCall,
    tipCall,
    { ...allowance, about: call.id },
  ];
  const [count, block, tip, views] = await reader.ask(calls, { optional: [tipCall] });
  const [view] = reader.expect("what Permit2 may take", views, (result) => readViews(result, 1)).results;
  return {
    next: reader.expect("the number of the payer's transactions", count, readSafeInteger),
    head: reader.expect("the newest block", block, readHead),
    tip,
    isShort: isShort(view, call),
  };
}

async function isAllowanceShort(chain: Chain, call: SettleCall): Promise<boolean> {
  const [allowance] = await askViews(chain.reader, [allowanceOf(call.payment)], viewGas, call.id);
  return isShort(allowance, call);
}

/** True if the allowance is too small. False without an answer: the simulation then refuses the payment and says why. */
function isShort(
  allowance: Awaited<ReturnType<typeof askViews>>[number] | undefined,
  call: SettleCall,
): boolean {
  return allowance?.word !== undefined && BigInt(allowance.word) < amountOf(call);
}

/**
 * The parts of a prepared payment's plan that depend on its approval. An approval covers at least the payment's limit and
 * replaces the one before, so pending payments that bring an approval with the same nonce share it.
 */
export function planApproval(call: SettleCall): Pick<Plan, "bounds" | "first" | "bringsApproval"> {
  const { payment } = call;
  const bringsApproval = approvalOf(payment) !== undefined || approvalTransactionOf(payment) !== undefined;
  return {
    bounds: [bringsApproval ? payment.limit : allowanceOf(payment)],
    first: transactionBefore(call),
    bringsApproval,
  };
}

/** The payer's transaction that must be mined before a prepared payment can settle; {@link prepare} keeps only a valid one. */
function transactionBefore({ payment }: SettleCall): PayerTransaction | undefined {
  const approval = approvalTransactionOf(payment);
  if (approval === undefined || approval === "malformed") return undefined;
  const transaction = readSignedTransaction(approval.raw);
  if (transaction === undefined) return undefined;
  const from = payment.payer;
  const refuse = (has: bigint, needed: bigint) => chainRefusals.gasMoneyMissing(from, has, needed);
  return { from, refuse, ...transaction };
}
