import type { AuthContext, ProblemDetails, SettleAnswer, VerifyAnswer, Written } from "./answers.ts";
import {
  type Invalid,
  nextStepOfRefusal,
  type ReferenceReason,
  settleErrorReason,
  situations,
} from "./catalogue.ts";
import type { Envelope, PaymentRequest } from "./requests.ts";
import type { Warning } from "./strictness.ts";

/** Names the reason of a refusal as another facilitator does. With it, responses also name a reverted transaction. */
export type NameReason = (
  refusal: Invalid,
  operation: "verify" | "settle",
  envelope: Envelope | PaymentRequest,
) => Invalid["reason"] | ReferenceReason;

/** The members of a good response that belong to one scheme: `extra`. */
export type AnswerExtra = { readonly extra?: Readonly<Record<string, unknown>> | undefined };

/** The response of a verify: valid if nothing refuses the payment. Only a good one has warnings. */
export function verifyAnswer(
  envelope: Envelope,
  refusal: Invalid | undefined,
  authContext: AuthContext,
  warnings: readonly Warning[],
  nameReason: NameReason | undefined,
): Written<VerifyAnswer> {
  const rest = { ...payerMember(envelope), network: envelope.network, authContext };
  return refusal === undefined
    ? { isValid: true, ...rest, ...warningsMember(warnings) }
    : {
        isValid: false,
        invalidReason: nameReason?.(refusal, "verify", envelope) ?? refusal.reason,
        invalidMessage: refusal.message,
        ...rest,
        ...nextStepOfRefusal(refusal, idOf(envelope)),
      };
}

/**
 * The response of a settle that moved the money.
 *
 * @param transaction empty if there was nothing to move
 * @param amount the settled amount, if the payment allowed more
 */
export function settledAnswer(
  envelope: Envelope,
  transaction: string,
  amount: bigint | undefined,
  warnings: readonly Warning[],
): Written<SettleAnswer> {
  const rest = { ...(amount !== undefined && { amount: `${amount}` }), ...warningsMember(warnings) };
  return { success: true, transaction, network: envelope.network, ...payerMember(envelope), ...rest };
}

/** The response of a settle that moved nothing, and never will. */
export function refusedSettleAnswer(
  envelope: Envelope,
  refusal: Invalid,
  nameReason: NameReason | undefined,
): Written<SettleAnswer> {
  return {
    success: false,
    errorReason:
      nameReason?.(refusal, "settle", envelope) ?? settleErrorReason(refusal, envelope.x402Version),
    errorMessage: refusal.message,
    transaction: (nameReason && refusal.transaction) ?? "",
    network: envelope.network,
    ...payerMember(envelope),
    ...nextStepOfRefusal(refusal, idOf(envelope)),
  };
}

/** Seconds after which a pending settle may be retried. */
export const pendingRetryAfterSeconds = situations.pending.retryAfterSeconds ?? 1;

/**
 * The payment was sent, but its outcome is not known in time; status 503. v2 has a reason for this, which makes
 * public servers retry; v1 can only say that it could not tell, and names the hash in the text.
 */
export function pendingProblem(
  envelope: Envelope,
  transaction: string,
  requestId: string,
): Written<ProblemDetails> {
  const detail = `Transaction ${transaction} is sent and not decided yet; ask again with the same payment, or at the address in Location`;
  const isV2 = envelope.x402Version === 2;
  return {
    type: "urn:x402-facilitator-kit:problem:settlement-pending",
    title: "The settlement is under way",
    status: 503,
    detail,
    instance: `urn:uuid:${requestId}`,
    success: false,
    errorReason: isV2 ? "settlement_pending" : "unexpected_settle_error",
    errorMessage: detail,
    transaction: isV2 ? transaction : "",
    network: envelope.network,
    ...payerMember(envelope),
    ...nextStepOfRefusal({ situation: "pending" }, idOf(envelope)),
  };
}

/** The settlement id of a request that could be read. */
function idOf(envelope: Envelope | PaymentRequest): string | undefined {
  return "settlementId" in envelope ? envelope.settlementId : undefined;
}

/** The member with a response's warnings; empty if there are none. */
export function warningsMember(warnings: readonly Warning[]): { warnings?: Warning[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
}

function payerMember({ payer }: Envelope): { payer?: string } {
  return payer === undefined ? {} : { payer };
}
