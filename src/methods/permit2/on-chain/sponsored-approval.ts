import type { Chain } from "../../../chain/chain.ts";
import { askViews } from "../../../chain/chain-reader.ts";
import { viewGas } from "../../../chain/views.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { expiryMarginSeconds } from "../../../protocol/refusals.ts";
import { amountOf, type SettleCall } from "../../on-chain/settling.ts";
import {
  approvalExtension,
  approvalOf,
  approvalRefusals,
  checkApproval,
  withoutApproval,
} from "../approval.ts";
import { allowanceOf } from "./state.ts";

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
