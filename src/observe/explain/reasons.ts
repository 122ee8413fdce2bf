import type { MistakeId } from "../../protocol/mistakes.ts";
import type { InvalidReason } from "../../protocol/reasons.ts";

/** The meaning of a reason for developers, its fix, and the mistakes that usually cause it. */
export type ReasonAdvice = { meaning: string; fix: string; mistakes: readonly MistakeId[] };

/** Advice for every reason of verify and settle. */
export const reasonAdvice: Readonly<
  Record<
    InvalidReason | "unexpected_verify_error" | "unexpected_settle_error" | "settlement_pending",
    ReasonAdvice
  >
> = {
  invalid_payload: {
    meaning: "The payment could not be read. A v1 settle also says it where verify names a finer reason.",
    fix: "Send what the message names as the protocol has it; `x402-kit explain` lists everything that is wrong with a body.",
    mistakes: ["not-decoded", "encoded-twice", "missing-member", "number-too-large", "malformed-signature"],
  },
  invalid_x402_version: {
    meaning: "paymentPayload.x402Version is neither 1 nor 2.",
    fix: "Send x402Version 1 or 2 as a number.",
    mistakes: ["missing-member", "wrong-version"],
  },
  unsupported_scheme: {
    meaning: "The scheme is not “exact”.",
    fix: 'Use scheme "exact".',
    mistakes: ["missing-member"],
  },
  invalid_network: {
    meaning: "The network is unknown or not served here, or payment and requirements name different ones.",
    fix: "Name the same supported network in the payment and in the requirements, in the spelling of the version.",
    mistakes: ["unknown-network", "wrong-version", "networks-differ"],
  },
  invalid_payment_requirements: {
    meaning: "What the seller asks for cannot be settled: amount, asset or payTo.",
    fix: "Change the seller's requirements as the message says; the payer then signs for the new ones.",
    mistakes: [
      "pay-to-is-not-the-contract",
      "other-tier",
      "wrong-asset",
      "amount-in-dollars",
      "amount-zero",
      "number-too-large",
      "missing-member",
    ],
  },
  invalid_exact_evm_payload_recipient_mismatch: {
    meaning: "authorization.to is not the facilitator contract.",
    fix: "Offer the facilitator contract as payTo, and sign again.",
    mistakes: ["signed-for-another-recipient", "other-tier"],
  },
  invalid_exact_evm_payload_authorization_value: {
    meaning: "authorization.value is not exactly the required amount.",
    fix: "Sign exactly the required amount.",
    mistakes: ["amount-differs", "amount-off-by-decimals"],
  },
  invalid_exact_evm_payload_authorization_valid_after: {
    meaning: "The authorization is not valid yet by the chain's clock.",
    fix: 'Wait until validAfter has passed, or sign with validAfter "0".',
    mistakes: ["not-valid-yet", "times-in-milliseconds"],
  },
  invalid_exact_evm_payload_authorization_valid_before: {
    meaning: "The authorization has expired by the chain's clock, or is about to.",
    fix: "Sign again with a validBefore between 6 seconds and a day ahead.",
    mistakes: ["expired", "times-in-milliseconds"],
  },
  invalid_exact_evm_payload_signature: {
    meaning: "The signature is not the payer's over this authorization, on this chain, for this token.",
    fix: "Sign the authorization as it is sent, with the payer's key and the token's own domain.",
    mistakes: [
      "extra-differs",
      "signed-with-another-domain",
      "signed-other-values",
      "signed-receive",
      "signed-by-another-key",
      "malformed-signature",
    ],
  },
  invalid_exact_evm_payload_undeployed_smart_wallet: {
    meaning: "The payer is a smart wallet without code yet.",
    fix: "Deploy the wallet, then sign again.",
    mistakes: ["undeployed-wallet"],
  },
  insufficient_funds: {
    meaning: "The payer's balance does not hold the amount, or other settlements under way use it up.",
    fix: "Fund the payer, or wait for the settlements under way; on a local chain: `x402-kit fund`.",
    mistakes: ["amount-off-by-decimals"],
  },
  invalid_transaction_state: {
    meaning:
      "The authorization was used or cancelled, a party is blacklisted, the token is paused, or the transaction was mined and reverted.",
    fix: "Sign each payment with a new nonce; if this one was settled before, it is paid. If its transaction reverted, or others used it, do as `nextAction` says before anything is signed again. A blacklisted party cannot pay or be paid.",
    mistakes: ["refused"],
  },
  unexpected_verify_error: {
    meaning: "No verdict (503).",
    fix: "Send the same payment again.",
    mistakes: ["undetermined"],
  },
  unexpected_settle_error: {
    meaning: "No verdict (503): the payment may have been settled.",
    fix: "Send the same payment again, never a new one.",
    mistakes: ["undetermined"],
  },
  settlement_pending: {
    meaning: "The transaction is on its way and named in the answer.",
    fix: "Send the same payment again.",
    mistakes: ["undetermined"],
  },
};
