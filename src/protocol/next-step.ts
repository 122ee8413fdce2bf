import type { Invalid, InvalidReason } from "./reasons.ts";
import { settlementPath } from "./routes.ts";
import { type nextActions, type paymentStates, type Situation, type Step, situations } from "./situations.ts";

/** The situation of a reason where a refusal does not name another. */
const situationOf: Readonly<Record<InvalidReason, Situation>> = {
  invalid_payload: "request_wrong",
  invalid_x402_version: "request_wrong",
  unsupported_scheme: "request_wrong",
  invalid_network: "request_wrong",
  invalid_payment_requirements: "request_wrong",
  invalid_exact_evm_payload_recipient_mismatch: "authorization_wrong",
  invalid_exact_evm_payload_authorization_value: "authorization_wrong",
  invalid_exact_evm_payload_authorization_valid_after: "authorization_wrong",
  invalid_exact_evm_payload_authorization_valid_before: "authorization_wrong",
  invalid_exact_evm_payload_signature: "authorization_wrong",
  invalid_exact_evm_payload_undeployed_smart_wallet: "wallet_not_deployed",
  insufficient_funds: "payer_cannot_pay",
  invalid_transaction_state: "used_here",
};

/** The members as they are written; in expected answers the seconds may be a placeholder. */
export type NextStep = {
  nextAction: keyof typeof nextActions;
  paymentState: keyof typeof paymentStates;
  retryAfterSeconds?: number | string;
  poll?: string;
};

/** What follows from a refusal. `settlementId` is that of the payment, where it could be read. */
export function nextStepOfRefusal(
  { reason, situation = situationOf[reason], retryAfterSeconds }: Invalid,
  settlementId: string | undefined,
): NextStep {
  return writeStep(situation, { retryAfterSeconds, settlementId });
}

/**
 * What follows from a problem: with 4xx the request is wrong, otherwise nothing is known. A verify takes no money; before a
 * settle that was not processed, an earlier request may have.
 */
export function nextStepOfProblem(
  operation: "verify" | "settle",
  status: number,
  retryAfterSeconds?: number | string,
): NextStep {
  const isVerify = operation === "verify";
  if (status === 403) return writeStep(isVerify ? "verify_not_allowed" : "not_allowed", {});
  if (status === 409 && !isVerify) return writeStep("identifier_reused", {});
  const isTransient = status >= 500 || status === 429 || status === 408;
  if (isTransient) return writeStep("no_verdict", { retryAfterSeconds });
  return writeStep(isVerify ? "verify_refused" : "request_refused", {});
}

/** What follows from a settlement that is not decided in time. */
export function nextStepOfPending(settlementId: string | undefined): NextStep {
  return writeStep("pending", { settlementId });
}

function writeStep(
  situation: Situation,
  given: { retryAfterSeconds?: number | string | undefined; settlementId?: string | undefined },
): NextStep {
  const { nextAction, paymentState, retryAfterSeconds: usual, poll }: Step = situations[situation];
  const retryAfterSeconds = given.retryAfterSeconds ?? usual;
  return {
    nextAction,
    paymentState,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(poll && given.settlementId !== undefined && { poll: settlementPath(given.settlementId) }),
  };
}
