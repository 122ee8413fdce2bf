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

/** Names the reason of a refusal as another facilitator does, whose answers also name a transaction that was reverted. */
export type NameReason = (
  refusal: Invalid,
  operation: "verify" | "settle",
  envelope: Envelope | PaymentRequest,
) => Invalid["reason"] | ReferenceReason;

/** The members of a good answer that belong to one scheme: `extra`. */
export type AnswerExtra = { readonly extra?: Readonly<Record<string, unknown>> | undefined };

/** The verdict of a verify: valid when nothing refuses the payment. Only a good one is warned of. */
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
 * The answer of a settle that moved the money.
 *
 * @param transaction empty where none was to be moved
 * @param amount how much of it, where the payment allowed more
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

/** The answer of a settle that did not, and never will. */
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

/** Seconds after which a pending settle may be asked for again. */
export const pendingRetryAfterSeconds = situations.pending.retryAfterSeconds ?? 1;

/**
 * The payment is on its way, and its outcome is not known in time; status 503. v2 has a reason for it, which makes
 * public servers ask again; v1 can only say that it could not tell, and names the hash in the text.
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

/** The member of an answer that holds its warnings; none without one. */
export function warningsMember(warnings: readonly Warning[]): { warnings?: Warning[] } {
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
}

function payerMember({ payer }: Envelope): { payer?: string } {
  return payer === undefined ? {} : { payer };
}
