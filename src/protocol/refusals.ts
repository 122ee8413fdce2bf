import type { Address } from "./hex.ts";
import type { Asset } from "./networks.ts";
import { type Invalid, invalid } from "./reasons.ts";

/** How long before `validBefore` a payment must arrive to be settled in time. */
export const expiryMarginSeconds = 6n;

/** How far ahead of the chain's time `validBefore` may be, in seconds, unless configured otherwise: a day. */
export const usualMaxValiditySeconds = 86_400n;

/** A number, or a placeholder where it is not known beforehand. */
type Shown = bigint | string;

/**
 * Why a well-formed payment is refused, each with its reason and its sentence. The service and the fixtures say these
 * same sentences.
 */
export const refusals = {
  networkNotEnabled: (network: string, enabled: readonly string[]) =>
    invalid(
      "invalid_network",
      `${network} is not enabled here; enabled: ${enabled.join(", ")}`,
      "requirements",
    ),

  assetNotAccepted: (asset: Address, network: string, accepted: readonly Pick<Asset, "address">[]) =>
    invalid(
      "invalid_payment_requirements",
      `The asset ${asset} is not accepted on ${network}; accepted: ${accepted.map(({ address }) => address).join(", ")}`,
      "requirements",
    ),

  payToIsNotContract: (facilitatorContract: Address) =>
    invalid(
      "invalid_payment_requirements",
      `paymentRequirements.payTo must be the facilitator contract ${facilitatorContract}`,
      "requirements",
    ),

  belowMinimum: (value: bigint, minimum: bigint) =>
    invalid(
      "invalid_payment_requirements",
      `The amount of ${value} is below the organization's minimum of ${minimum}`,
      "requirements",
    ),

  valueIsZero: () =>
    invalid(
      "invalid_payment_requirements",
      "The amount is 0; payments of nothing are not settled",
      "requirements",
    ),

  recipientIsNotContract: (facilitatorContract: Address) =>
    invalid(
      "invalid_exact_evm_payload_recipient_mismatch",
      `authorization.to must be the facilitator contract ${facilitatorContract}`,
    ),

  valueDiffers: (value: bigint, required: bigint) =>
    invalid(
      "invalid_exact_evm_payload_authorization_value",
      `authorization.value is ${value}, but exactly ${required} is required`,
    ),

  tooEarly: (validAfter: bigint, now: Shown) =>
    invalid(
      "invalid_exact_evm_payload_authorization_valid_after",
      `The authorization is valid after ${validAfter}; the chain's time is ${now}`,
    ),

  tooLate: (validBefore: bigint, now: Shown) =>
    invalid(
      "invalid_exact_evm_payload_authorization_valid_before",
      `The authorization is valid before ${validBefore}; the chain's time is ${now}, and ${expiryMarginSeconds} seconds are needed to settle`,
    ),

  tooFarAhead: (validBefore: bigint, now: Shown, mostSeconds: bigint) =>
    invalid(
      "invalid_exact_evm_payload_authorization_valid_before",
      `The authorization is valid before ${validBefore}; the chain's time is ${now}, and at most ${mostSeconds} seconds ahead are accepted`,
    ),

  notSignedByPayer: (payer: Address, network: string, { name, version }: Pick<Asset, "name" | "version">) =>
    invalid(
      "invalid_exact_evm_payload_signature",
      `The signature is not that of ${payer} over this authorization on ${network} (domain ${name}, version ${version})`,
    ),

  walletRefuses: (payer: Address) =>
    invalid(
      "invalid_exact_evm_payload_signature",
      `The contract at ${payer} does not accept the signature (EIP-1271)`,
    ),

  tokenRefusesSignature: (payer: Address) =>
    invalid(
      "invalid_exact_evm_payload_signature",
      `The token does not accept the signature for ${payer}: code at the payer's address (EIP-7702, EIP-1271) decides there`,
    ),

  walletNotDeployed: (payer: Address, network: string) =>
    invalid(
      "invalid_exact_evm_payload_undeployed_smart_wallet",
      `The smart wallet ${payer} is not deployed on ${network}; deploy it before paying`,
    ),

  balanceTooSmall: (balance: Shown, value: bigint) =>
    invalid(
      "insufficient_funds",
      `The payer holds ${balance} of the asset's smallest unit; ${value} is needed`,
    ),

  balanceTakenUp: (balance: Shown, value: bigint) =>
    invalid(
      "insufficient_funds",
      `The payer's balance of ${balance} is taken up by settlements under way; ${value} more is needed`,
    ),

  /** Used or cancelled on chain by another party: the token does not tell the two apart. */
  usedOnChain: () => invalid("invalid_transaction_state", "The authorization was used or cancelled before"),

  /** Claimed here before. Says no more, because the caller may not be its owner. */
  usedHere: () => invalid("invalid_transaction_state", "The authorization was used before"),

  beingSettled: () => invalid("invalid_transaction_state", "Another request is settling this authorization"),

  settledBefore: (transaction: string) =>
    invalid(
      "invalid_transaction_state",
      `This authorization was settled before, by transaction ${transaction}`,
    ),

  /** `why` is the settlement's failure, and perhaps what became of it since. */
  failed: (transaction: string, why: string) =>
    invalid("invalid_transaction_state", `The settlement failed in transaction ${transaction}: ${why}`),

  assetPaused: () => invalid("invalid_transaction_state", "The asset is paused by its issuer"),

  payerBlacklisted: () =>
    invalid("invalid_transaction_state", "The payer is blacklisted by the asset's issuer"),

  recipientBlacklisted: (recipient: Address) =>
    invalid("invalid_transaction_state", `The recipient ${recipient} is blacklisted by the asset's issuer`),

  contractBlacklisted: () =>
    invalid("invalid_transaction_state", "The facilitator contract is blacklisted by the asset's issuer"),
} as const satisfies Record<string, (...facts: never[]) => Invalid>;
