import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { methodOf } from "../../methods/methods.ts";
import { checkApproval, checkDeadline } from "../../methods/permit2/approval.ts";
import { broughtApproval, checkTransaction } from "../../methods/permit2/approval-transaction.ts";
import { localMaxFeePerGas } from "../../payer/local-chains.ts";
import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import { adviceOnAnswer } from "../../protocol/catalogue-texts.ts";
import {
  checkTerms,
  checkValidityWindow,
  gasSponsorings,
  type ServedNetwork,
} from "../../protocol/checks.ts";
import { type Finding, isCause } from "../../protocol/mistakes.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/**
 * Findings for refusals that follow from the request alone, by verify's own checks, so that `explain` never calls a payment
 * good that verify refuses. Nothing else looks at the approvals that come with a payment; of the other checks only a
 * refusal that no earlier finding explains is added.
 *
 * @param now unix seconds; undefined skips the checks of times
 */
export function explainAsVerify(
  request: PaymentRequest,
  network: ServedNetwork,
  {
    found,
    now,
    operation = "settle",
  }: { found: readonly Finding[]; now: bigint | undefined; operation?: Operation | undefined },
): Finding[] {
  const approval = refuseApproval(request, now);
  if (approval !== undefined) return [findingOf(approval, request)];
  if (found.some(isCause)) return [];
  const checking = { method: methodOf(request.payment), operation };
  const refusal =
    checkTerms(request, network, checking) ??
    (now === undefined ? undefined : checkValidityWindow(request, now, network));
  return refusal === undefined ? [] : [findingOf(refusal, request)];
}

/** The refusal for an approval of Permit2 that comes with the payment, as far as it does not depend on the chain's state. */
function refuseApproval(
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

function findingOf(refusal: Invalid, request: PaymentRequest): Finding {
  const { reason, situation, message } = withReasonOfMethod<Invalid>(refusal, request);
  const { fact, why, fix } = adviceOnAnswer(reason, { situation, message });
  return { mistake: reason, situation, title: fact, at: "", why, fix, reason };
}
