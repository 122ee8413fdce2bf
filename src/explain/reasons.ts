import type { InvalidReason } from "../protocol/reasons.ts";
import type { MistakeId } from "./mistakes.ts";

/** What a reason means to the developer who gets it, and which mistakes usually lead to it. */
export type ReasonAdvice = { meaning: string; mistakes: readonly MistakeId[] };

/** Advice for every reason of verify and settle. */
export const reasonAdvice: Readonly<
  Record<
    InvalidReason | "unexpected_verify_error" | "unexpected_settle_error" | "settlement_pending",
    ReasonAdvice
  >
> = {
  invalid_payload: {
    meaning: "The payment could not be read. A v1 settle also says it where verify names a finer reason.",
    mistakes: ["not-decoded", "encoded-twice", "missing-member", "malformed-signature"],
  },
  invalid_x402_version: {
    meaning: "paymentPayload.x402Version is neither 1 nor 2.",
    mistakes: ["missing-member", "wrong-version"],
  },
  unsupported_scheme: { meaning: "The scheme is not “exact”.", mistakes: ["missing-member"] },
  invalid_network: {
    meaning: "The network is unknown or not served here, or payment and requirements name different ones.",
    mistakes: ["unknown-network", "wrong-version", "networks-differ"],
  },
  invalid_payment_requirements: {
    meaning: "What the seller asks for cannot be settled: amount, asset or payTo.",
    mistakes: [
      "pay-to-is-not-the-contract",
      "other-tier",
      "wrong-asset",
      "amount-in-dollars",
      "missing-member",
    ],
  },
  invalid_exact_evm_payload_recipient_mismatch: {
    meaning: "authorization.to is not the facilitator contract.",
    mistakes: ["signed-for-another-recipient", "other-tier"],
  },
  invalid_exact_evm_payload_authorization_value: {
    meaning: "authorization.value is not exactly the required amount.",
    mistakes: ["amount-differs", "amount-off-by-decimals"],
  },
  invalid_exact_evm_payload_authorization_valid_after: {
    meaning: "The authorization is not valid yet by the chain's clock.",
    mistakes: ["not-valid-yet", "times-in-milliseconds"],
  },
  invalid_exact_evm_payload_authorization_valid_before: {
    meaning: "The authorization has expired by the chain's clock, or is about to.",
    mistakes: ["expired", "times-in-milliseconds"],
  },
  invalid_exact_evm_payload_signature: {
    meaning: "The signature is not the payer's over this authorization, on this chain, for this token.",
    mistakes: [
      "signed-with-another-domain",
      "signed-other-values",
      "signed-receive",
      "signed-by-another-key",
      "malformed-signature",
    ],
  },
  invalid_exact_evm_payload_undeployed_smart_wallet: {
    meaning: "The payer is a smart wallet without code yet.",
    mistakes: ["undeployed-wallet"],
  },
  insufficient_funds: {
    meaning:
      "The payer's balance does not hold the amount, or other settlements under way use it up. Fund the payer, or wait for those; on a local chain: `x402-kit fund`.",
    mistakes: ["amount-off-by-decimals"],
  },
  invalid_transaction_state: {
    meaning:
      "The authorization was used or cancelled, a party is blacklisted, the token is paused, or the transaction was mined and reverted. Each payment needs a new authorization; never reuse a nonce.",
    mistakes: ["refused"],
  },
  unexpected_verify_error: { meaning: "No verdict (503): try again.", mistakes: ["undetermined"] },
  unexpected_settle_error: {
    meaning: "No verdict (503): the payment may have been settled. Send the same payment again.",
    mistakes: ["undetermined"],
  },
  settlement_pending: {
    meaning: "The transaction is on its way and named in the answer. Send the same payment again.",
    mistakes: ["undetermined"],
  },
};
