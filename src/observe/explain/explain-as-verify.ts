import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { checkApproval, checkDeadline } from "../../methods/approval.ts";
import { broughtApproval, checkTransaction } from "../../methods/approval-transaction.ts";
import { localMaxFeePerGas } from "../../payer/local-chains.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { gasSponsorings } from "../../protocol/checks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/** The refusal for the Permit2 approval that comes with a payment, as far as it can be decided without the chain's state. */
export function refuseApproval(
  { payment, knownNetwork }: PaymentRequest,
  now: bigint | undefined,
): Invalid | undefined {
  const { approval, transaction } = broughtApproval(payment, { gasSponsoring: gasSponsorings });
  if (transaction !== undefined) {
    const { chainId } = knownNetwork;
    const read = checkTransaction(
      transaction,
      payment,
      { chainId, maxFeePerGas: localMaxFeePerGas },
      recoverSigner,
    );
    return "reason" in read ? read : undefined;
  }
  if (approval === undefined) return undefined;
  const wrong = checkApproval(approval, payment);
  if (wrong !== undefined || approval === "malformed" || now === undefined) return wrong;
  return checkDeadline(approval, payment, now);
}
