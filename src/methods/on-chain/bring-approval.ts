import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { approvalExtension } from "../approval.ts";
import { transactionExtension } from "../approval-transaction.ts";
import { signApproval } from "../permit2/sign-approval.ts";
import { signApprovalTransaction } from "../permit2/sign-approval-transaction.ts";
import { askNextApproval, askNextTransaction } from "./payer-state.ts";
import type { ApprovingPayer } from "./settling.ts";

/** Creates the extension with a Permit2 approval: a token permit (EIP-2612), or a transaction that the payer signs. */
export async function bringApproval(
  kind: true | "transaction",
  payment: SignedPayment,
  { ask, chainId, asset, signer, keySigner }: ApprovingPayer,
): Promise<object> {
  if (kind === "transaction") {
    const next = await askNextTransaction(ask, payment.payer);
    const info = await signApprovalTransaction(keySigner(), { asset: asset.address, chainId, ...next });
    return { [transactionExtension]: { info } };
  }
  const info = await signApproval(signer, {
    asset,
    chainId,
    from: payment.payer,
    amount: payment.limit,
    deadline: payment.window.last,
    nonce: await askNextApproval(ask, payment),
  });
  return { [approvalExtension]: { info } };
}
