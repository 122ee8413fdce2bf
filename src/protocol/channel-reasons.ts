import { type Invalid, invalid, invalidAt, type RefusedSituation, type SchemeReason } from "./catalogue.ts";

/*
 * The reasons of scheme “batch-settlement”, named as in its specification, each with the catalogue situation whose
 * consequences it has. Web pages with the fixtures do not load them.
 */

const rows = {
  payload_type: "payload_malformed",
  missing_eip712_domain: "requirements_malformed",
  erc3009_authorization_required: "payload_malformed",
  permit2_authorization_required: "payload_malformed",
  channel_id_mismatch: "value_differs",
  receiver_mismatch: "recipient_differs",
  receiver_authorizer_mismatch: "recipient_differs",
  token_mismatch: "token_differs",
  withdraw_delay_mismatch: "value_differs",
  withdraw_delay_out_of_range: "value_differs",
  payload_authorization_valid_before: "expired",
  payload_authorization_valid_after: "not_valid_yet",
  eip6492_factory_not_allowed: "wallet_not_deployed",
  receive_authorization_signature: "signature_wrong",
  permit2_invalid_spender: "spender_differs",
  permit2_amount_mismatch: "value_differs",
  permit2_deadline_expired: "expired",
  permit2_invalid_signature: "signature_wrong",
  permit2_allowance_required: "allowance_too_small",
  eip2612_owner_mismatch: "approval_of_other_payer",
  eip2612_asset_mismatch: "approval_of_other_token",
  eip2612_spender_mismatch: "approval_for_other_spender",
  eip2612_amount_mismatch: "approval_amount_differs",
  eip2612_deadline_expired: "approval_expired",
  erc20_approval_unavailable: "allowance_too_small",
  voucher_signature: "signature_wrong",
  insufficient_balance: "balance_too_small",
  channel_not_found: "balance_too_small",
  cumulative_exceeds_balance: "balance_too_small",
  cumulative_below_claimed: "value_differs",
  deposit_simulation_failed: "would_revert",
  authorizer_not_configured: "pay_to_not_accepted",
  authorizer_address_mismatch: "pay_to_not_accepted",
  claim_simulation_failed: "would_revert",
  claim_transaction_failed: "would_revert",
  nothing_to_settle: "balance_too_small",
  settle_simulation_failed: "would_revert",
  refund_no_balance: "balance_too_small",
  refund_simulation_failed: "would_revert",
} as const satisfies Readonly<Record<string, RefusedSituation>>;

/** A reason without the common prefix. */
export type ChannelReason = keyof typeof rows;

export const channelReason = <Name extends ChannelReason>(name: Name) =>
  `invalid_batch_settlement_evm_${name}` as const;

/** All reasons, with the prefix. */
export const channelReasons: readonly SchemeReason[] = Object.keys(rows).map(
  (name): SchemeReason => `invalid_batch_settlement_evm_${name}`,
);

export const isChannelReason = (name: string): name is SchemeReason =>
  channelReasons.some((reason) => reason === name);

/** Refuses a payment for a reason of the scheme; `at` is the member at fault, which the message starts with. */
export function channelInvalid(name: ChannelReason, fact: string, at?: string): Invalid {
  const refusal =
    at === undefined
      ? invalid(rows[name], fact)
      : invalidAt(rows[name], `paymentPayload.payload.${at}`, fact);
  return { ...refusal, reason: channelReason(name) };
}
