import type { Invalid, InvalidReason, ReferenceReason, Situation } from "./catalogue.ts";
import type { PaymentWords } from "./signed-payment.ts";
import type { NameReason } from "./write-answers.ts";

/*
 * The reasons of the public reference facilitator, `@x402/evm` 2.27, where they differ from the specification. Kept
 * out of the catalogue, since web pages with the fixtures do not need them.
 */

type Reason = Invalid["reason"];
type Name = ReferenceReason | Reason;

/** Its name for a reason or a situation, for both operations or for each. */
type Names = Name | { verify: Name; settle: Name };

/** By reason. Reasons that only Permit2 payments have already use its names. */
const byReason: Readonly<Partial<Record<Reason, Names>>> = {
  invalid_exact_evm_payload_recipient_mismatch: "invalid_exact_evm_recipient_mismatch",
  invalid_exact_evm_payload_authorization_value: "invalid_exact_evm_authorization_value",
  invalid_exact_evm_payload_signature: "invalid_exact_evm_signature",
  invalid_exact_evm_payload_undeployed_smart_wallet: "eip6492_factory_not_allowed",
  insufficient_funds: "invalid_exact_evm_insufficient_balance",
  invalid_batch_settlement_evm_eip2612_owner_mismatch: "eip2612_from_mismatch",
  invalid_batch_settlement_evm_eip2612_asset_mismatch: "eip2612_asset_mismatch",
  invalid_batch_settlement_evm_eip2612_spender_mismatch: "eip2612_spender_not_permit2",
  invalid_batch_settlement_evm_eip2612_deadline_expired: "eip2612_deadline_expired",
};

const failed = "invalid_exact_evm_transaction_failed";

/**
 * Refusals by the token for reasons that the reference facilitator does not check. In settle it simulates only scheme
 * “upto”; other payments fail when sent.
 */
const wouldFail = {
  eip3009: { verify: "invalid_exact_evm_transaction_simulation_failed", settle: failed },
  permit2: { verify: "permit2_simulation_failed", settle: failed },
  upto: "permit2_simulation_failed",
} as const;

/** For Permit2 the reference facilitator does not check nonces. */
const used = { ...wouldFail, eip3009: "invalid_exact_evm_nonce_already_used" } as const;

const reverted = { eip3009: failed, permit2: failed, upto: "invalid_upto_evm_transaction_failed" } as const;

/** By situation, for reasons that it splits up. */
const bySituation: Readonly<
  Partial<Record<Reason, Partial<Record<Situation, Partial<Record<PaymentWords["reference"], Names>>>>>>
> = {
  invalid_network: { networks_differ: { eip3009: "invalid_exact_evm_network_mismatch" } },
  invalid_transaction_state: {
    used_here: used,
    used_on_chain: used,
    settled_before: used,
    transaction_failed: reverted,
    failed_for_good: reverted,
    asset_paused: wouldFail,
    payer_blacklisted: wouldFail,
    recipient_blacklisted: wouldFail,
    contract_blacklisted: wouldFail,
    would_revert: wouldFail,
  },
  permit2_simulation_failed: { permit_would_revert: { permit2: wouldFail.permit2 } },
};

/**
 * The reference facilitator's name for the reason of a refusal, or the specification's if it has none. If an earlier
 * request used the payment, the situation is about that request, and only the reason counts.
 */
export const referenceReason: NameReason = ({ reason, situation, reference }, operation, envelope) => {
  const method = "words" in envelope ? envelope.words.reference : "eip3009";
  const names = reference ?? byReason[reason] ?? bySituation[reason]?.[situation]?.[method] ?? reason;
  return typeof names === "string" ? names : names[operation];
};

/** The specification's reasons, by the names that only the reference facilitator uses. */
const specReasons: Readonly<Record<ReferenceReason, InvalidReason>> = {
  invalid_exact_evm_network_mismatch: "invalid_network",
  invalid_exact_evm_missing_eip712_domain: "invalid_payment_requirements",
  invalid_exact_evm_signature: "invalid_exact_evm_payload_signature",
  invalid_exact_evm_recipient_mismatch: "invalid_exact_evm_payload_recipient_mismatch",
  invalid_exact_evm_authorization_value: "invalid_exact_evm_payload_authorization_value",
  eip6492_factory_not_allowed: "invalid_exact_evm_payload_undeployed_smart_wallet",
  invalid_exact_evm_insufficient_balance: "insufficient_funds",
  invalid_exact_evm_nonce_already_used: "invalid_transaction_state",
  invalid_exact_evm_transaction_simulation_failed: "invalid_transaction_state",
  invalid_exact_evm_transaction_failed: "invalid_transaction_state",
  invalid_upto_evm_transaction_failed: "invalid_transaction_state",
};

/** Translates a name of the reference facilitator to the specification's reason; other names stay unchanged. */
export function specReason(name: string): string {
  return Object.hasOwn(specReasons, name) ? specReasons[name as ReferenceReason] : name;
}
