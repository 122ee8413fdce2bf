import type { Chain, Transaction } from "../../../chain/chain.ts";
import { askViews } from "../../../chain/chain-reader.ts";
import { calldataGas } from "../../../chain/fees.ts";
import { viewGas } from "../../../chain/views.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { expiryMarginSeconds } from "../../../protocol/refusals.ts";
import { type Contract, createTransactions } from "../../on-chain/batch-transactions.ts";
import { amountOf, type SettleCall } from "../../on-chain/settling.ts";
import {
  approvalExtension,
  approvalOf,
  approvalRefusals,
  checkApproval,
  withoutApproval,
} from "../approval.ts";
import { encodeForward, encodeSettle, encodeSettleBatch } from "./permit2-calls.ts";
import { allowanceOf } from "./permit2-state.ts";

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

/**
 * Keeps the approval that came with a payment only where it is to be submitted: where that is switched on, and Permit2 may not take
 * enough yet. It sets what Permit2 may take to the very amount, so that one too many would break the payer's other payments.
 */
export async function prepare(chain: Chain, call: SettleCall): Promise<SettleCall | Invalid> {
  const { payment } = call;
  const approval = approvalOf(payment);
  if (approval === undefined) return call;
  const { gasSponsoring = [] } = chain.network;
  const without: SettleCall = { ...call, payment: withoutApproval(payment) };
  if (!gasSponsoring.includes(approvalExtension)) return without;
  const wrong = checkApproval(approval, payment);
  if (wrong !== undefined || approval === "malformed") return wrong ?? without;
  const [{ timestamp }, [allowance]] = await Promise.all([
    chain.head(),
    askViews(chain.reader, [allowanceOf(payment)], viewGas, call.id),
  ]);
  // What is no token is refused by the simulation, which says why.
  if (allowance?.word === undefined) return without;
  if (BigInt(allowance.word) >= amountOf(call)) return without;
  // Where the permit itself expires no later, that is what is said of it.
  const isTooLate =
    approval.deadline < timestamp + expiryMarginSeconds && approval.deadline < payment.window.last;
  return isTooLate ? approvalRefusals.expired(approval.deadline, timestamp) : call;
}
