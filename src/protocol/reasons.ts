import type { Situation } from "./situations.ts";

/**
 * Why a payment is not valid: the closed set of `invalidReason`, taken from the public x402 v1 list.
 * `unexpected_verify_error` is not among them: it stands for "no verdict" and only ever comes with a 503.
 */
export const invalidReasons = [
  "invalid_payload",
  "invalid_x402_version",
  "unsupported_scheme",
  "invalid_network",
  "invalid_payment_requirements",
  "invalid_exact_evm_payload_recipient_mismatch",
  "invalid_exact_evm_payload_authorization_value",
  "invalid_exact_evm_payload_authorization_valid_after",
  "invalid_exact_evm_payload_authorization_valid_before",
  "invalid_exact_evm_payload_signature",
  "invalid_exact_evm_payload_undeployed_smart_wallet",
  "insufficient_funds",
  "invalid_transaction_state",
] as const;

export type InvalidReason = (typeof invalidReasons)[number];

/** The five settle error codes of the v1 service. */
export const settleErrorReasonsV1 = [
  "invalid_payload",
  "invalid_payment_requirements",
  "insufficient_funds",
  "unexpected_settle_error",
  "invalid_transaction_state",
] as const;

export type SettleErrorReasonV1 = (typeof settleErrorReasonsV1)[number];

/** What a v2 settle may answer: the verify reason itself, a pending settlement, or "could not tell". */
export const settleErrorReasonsV2 = [
  ...invalidReasons,
  "settlement_pending",
  "unexpected_settle_error",
] as const;

export type SettleErrorReasonV2 = (typeof settleErrorReasonsV2)[number];

export type SettleErrorReason = SettleErrorReasonV1 | SettleErrorReasonV2;

/** Which half of the request is at fault: v1 settle has a code for each. */
export type InvalidPart = "payload" | "requirements";

/** A determined answer that the payment is not good, and why. */
export type Invalid = {
  reason: InvalidReason;
  fault: InvalidPart;
  /** One sentence for the caller: what is wrong and what would be right. Never internal error text. */
  message: string;
  /** The situation, where the reason alone does not give it. */
  situation?: Situation | undefined;
  /** When to try again, where that is known. */
  retryAfterSeconds?: number | string | undefined;
};

/** Says that a payment is invalid. `fault` matters only for the reasons that either half can cause. */
export function invalid(reason: InvalidReason, message: string, fault: InvalidPart = "payload"): Invalid {
  return { reason, message: limitMessage(message), fault };
}

/** The longest message of an answer, in characters: public schemas allow no more. */
export const longestMessage = 500;

/** A message as answers carry it: printable ASCII, and not too long for the public schemas. */
export function limitMessage(message: string): string {
  const plain = message
    .replace(/[“”]/g, '"')
    .replace(/…/g, "...")
    .replace(/[^\x20-\x7e]/g, "?");
  return plain.length > longestMessage ? `${plain.slice(0, longestMessage - 3)}...` : plain;
}

/** The code with which a settle of the given protocol version reports an invalid payment. */
export function settleErrorReason({ reason, fault }: Invalid, x402Version: 1 | 2): SettleErrorReason {
  if (x402Version === 2) return reason;
  switch (reason) {
    case "insufficient_funds":
    case "invalid_transaction_state":
    case "invalid_payment_requirements":
      return reason;
    default:
      return fault === "requirements" ? "invalid_payment_requirements" : "invalid_payload";
  }
}
