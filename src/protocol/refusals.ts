import { advice } from "./advice.ts";
import { type Address, sameAddress } from "./hex.ts";
import {
  type Asset,
  builtInNetworks,
  formatNetwork,
  type NetworkName,
  type NetworkRegistry,
} from "./networks.ts";
import { type Invalid, type InvalidPart, type InvalidReason, invalid } from "./reasons.ts";
import type { Situation } from "./situations.ts";
import { describeOne, type TokenUnits, unitsOf } from "./token-units.ts";

/** From this age on, blocks are not replaced any more. */
export const finalitySeconds = 1_800;

/** How long before `validBefore` a payment must arrive to be settled in time. */
export const expiryMarginSeconds = 6n;

/** How far ahead of the chain's time `validBefore` may be, in seconds, unless configured otherwise: a day. */
export const usualMaxValiditySeconds = 86_400n;

/** Whether a time is in milliseconds: too large for seconds, and a plausible date in milliseconds. */
const isInMilliseconds = (time: bigint) => time > 100_000_000_000n && time < 100_000_000_000_000n;

/** Names the network of a USDC that belongs to another network. */
function homeOf(asset: Address, network: string): string {
  const home = builtInNetworks.all.find(({ usdc }) => sameAddress(usdc.address, asset))?.name;
  return home === undefined || home === network ? "" : `, which is USDC on ${home},`;
}

/** The most addresses that a message lists. */
const mostListed = 4;

function listAddresses(assets: readonly Pick<Asset, "address">[]): string {
  const shown = assets.slice(0, mostListed).map(({ address }) => address);
  const more = assets.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

function adviceOnAmounts(value: bigint, required: bigint, asset: Asset | undefined): string {
  const power = powerOfTenBetween(value, required);
  return power === undefined ? advice["amount-differs"] : adviceOnPower(power, asset && unitsOf(asset));
}

/** What to look for where two amounts differ by a power of ten, with the units of their token where they are known. */
export function adviceOnPower(power: number, units: TokenUnits | undefined): string {
  // Tokens are often taken to have 18 decimals.
  const isByDecimals = units === undefined || [units.decimals, Math.abs(18 - units.decimals)].includes(power);
  const what = isByDecimals ? "the token's decimals twice or not at all" : "zeros wrongly";
  return `The two differ by 10^${power}: find which side counts ${what}${exampleOf(units)}.`;
}

/** What one whole token is in its smallest unit, such as `: 1 USDC is 1000000`; nothing of an unknown token. */
function exampleOf(units: TokenUnits | undefined): string {
  return units === undefined ? "" : `: ${describeOne(units)}`;
}

/** How many powers of ten lie between two amounts; undefined when it is no power of ten. */
export function powerOfTenBetween(a: bigint, b: bigint): number | undefined {
  if (a === 0n || b === 0n) return undefined;
  const [large, small] = a > b ? [a, b] : [b, a];
  if (large % small !== 0n) return undefined;
  const factor = (large / small).toString();
  return /^10+$/.test(factor) ? factor.length - 1 : undefined;
}

/** A number, or a placeholder where it is not known beforehand. */
type Shown = bigint | string;

/** The chain's time in the message of a refusal for its times; undefined in others. */
export function chainTimeIn(message: string | undefined): bigint | undefined {
  const [, time] = /; the chain's time is (\d{1,20})[.,]/.exec(message ?? "") ?? [];
  return time === undefined ? undefined : BigInt(time);
}

/** Some seconds, where they are not known beforehand. */
const shownSeconds = "<seconds>";

/** The seller's half of the request is wrong. */
const wrongRequirements = (message: string) =>
  invalid("invalid_payment_requirements", message, "requirements");

/** A refusal whose situation does not follow from its reason alone. */
const inSituation = (situation: Situation, reason: InvalidReason, message: string): Invalid => ({
  ...invalid(reason, message),
  situation,
});

/** The authorization, the token or an account is not in a state in which the payment can be settled. */
const wrongState = (situation: Situation, message: string) =>
  inSituation(situation, "invalid_transaction_state", message);

/**
 * Why a well-formed payment is refused, each with its reason and its sentence. The service and the fixtures say these
 * same sentences.
 */
export const refusals = {
  networkUnknown: (
    at: string,
    spelling: string,
    { x402Version, fault }: { x402Version: 1 | 2; fault: InvalidPart },
    networks: NetworkRegistry = builtInNetworks,
  ) => {
    const meant = networks.find(spelling, x402Version === 1 ? 2 : 1);
    const example = meant === undefined ? ", such as eip155:8453" : "";
    const known =
      x402Version === 1
        ? `one of ${networks.names.join(", ")}`
        : `the CAIP-2 name of a supported network${example}`;
    const hint =
      meant === undefined ? "" : `: ${formatNetwork(meant, x402Version)} in version ${x402Version}`;
    return invalid("invalid_network", `${at}.network must be ${known}${hint}`, fault);
  },

  networksDiffer: (paid: NetworkName, asked: NetworkName) =>
    invalid(
      "invalid_network",
      `The payment is for ${paid}, but paymentRequirements.network is ${asked}. ${advice["networks-differ"]}`,
      "requirements",
    ),

  networkNotEnabled: (network: string, enabled: readonly string[]) =>
    invalid(
      "invalid_network",
      `${network} is not enabled here; enabled: ${enabled.join(", ")}. Offer and sign for one of these`,
      "requirements",
    ),

  assetNotAccepted: (asset: Address, network: string, accepted: readonly Pick<Asset, "address">[]) =>
    wrongRequirements(
      `The asset ${asset}${homeOf(asset, network)} is not accepted on ${network}; accepted: ${listAddresses(accepted)}. ${advice["wrong-asset"]}`,
    ),

  payToIsNotContract: (payTo: Address | undefined, facilitatorContract: Address) =>
    wrongRequirements(
      `paymentRequirements.payTo is ${payTo}, but must be the facilitator contract ${facilitatorContract}. ${advice["pay-to-is-not-the-contract"]}`,
    ),

  belowMinimum: (value: bigint, minimum: bigint) =>
    wrongRequirements(`The amount of ${value} is below the organization's minimum of ${minimum}`),

  valueIsZero: () => wrongRequirements("The amount is 0; payments of nothing are not settled"),

  recipientIsNotContract: (to: Address, facilitatorContract: Address) =>
    invalid(
      "invalid_exact_evm_payload_recipient_mismatch",
      `authorization.to is ${to}, but must be the facilitator contract ${facilitatorContract}. ${advice["signed-for-another-recipient"]}`,
    ),

  valueDiffers: (value: bigint, required: bigint, asset: Asset | undefined) =>
    invalid(
      "invalid_exact_evm_payload_authorization_value",
      `authorization.value is ${value}, but exactly ${required} is required. ${adviceOnAmounts(value, required, asset)}`,
    ),

  tooEarly: (validAfter: bigint, now: Shown): Invalid => {
    const waitsLong = isInMilliseconds(validAfter);
    const refusal = invalid(
      "invalid_exact_evm_payload_authorization_valid_after",
      `The authorization is valid after ${validAfter}; the chain's time is ${now}. ${advice[waitsLong ? "times-in-milliseconds" : "not-valid-yet"]}`,
    );
    if (waitsLong) return refusal;
    const retryAfterSeconds = typeof now === "bigint" ? Number(validAfter - now) + 1 : shownSeconds;
    return { ...refusal, situation: "not_valid_yet", retryAfterSeconds };
  },

  tooLate: (validBefore: bigint, now: Shown) =>
    invalid(
      "invalid_exact_evm_payload_authorization_valid_before",
      `The authorization is valid before ${validBefore}; the chain's time is ${now}, and ${expiryMarginSeconds} seconds are needed to settle. ${advice.expired}`,
    ),

  tooFarAhead: (validBefore: bigint, now: Shown, mostSeconds: bigint) =>
    invalid(
      "invalid_exact_evm_payload_authorization_valid_before",
      `The authorization is valid before ${validBefore}; the chain's time is ${now}, and at most ${mostSeconds} seconds ahead are accepted. ${isInMilliseconds(validBefore) ? advice["times-in-milliseconds"] : "Sign again with an earlier validBefore."}`,
    ),

  /** `mistake` says what was probably done wrong: `describeWrongSignature`. */
  notSignedByPayer: (
    payer: Address,
    network: string,
    { name, version }: Pick<Asset, "name" | "version">,
    mistake: string,
  ) =>
    invalid(
      "invalid_exact_evm_payload_signature",
      `The signature is not that of ${payer} over this authorization on ${network} (name "${name}", version "${version}"). ${mistake}`,
    ),

  walletRefuses: (payer: Address) =>
    invalid(
      "invalid_exact_evm_payload_signature",
      `The contract at ${payer} does not accept the signature (EIP-1271)`,
    ),

  tokenRefusesSignature: (payer: Address) =>
    inSituation(
      "payer_cannot_pay",
      "invalid_exact_evm_payload_signature",
      `The token does not accept the signature for ${payer}: code at the payer's address (EIP-7702, EIP-1271) decides there`,
    ),

  /** The organization refuses payers with code. */
  payerHasCode: (payer: Address) =>
    inSituation(
      "payer_has_code",
      "invalid_exact_evm_payload_signature",
      `The payer ${payer} has code (a wallet, or EIP-7702), and this organization takes plain accounts only. Pay from a plain account`,
    ),

  walletNotDeployed: (payer: Address, network: string) =>
    invalid(
      "invalid_exact_evm_payload_undeployed_smart_wallet",
      `The smart wallet ${payer} is not deployed on ${network}; deploy it before paying`,
    ),

  balanceTooSmall: (balance: Shown, value: bigint, asset: Asset | undefined) =>
    invalid(
      "insufficient_funds",
      `The payer holds ${balance} of the asset's smallest unit; ${value} is needed. Fund the payer, or fix the price if it is off by decimals${exampleOf(asset && unitsOf(asset))}`,
    ),

  balanceTakenUp: (balance: Shown, value: bigint) =>
    inSituation(
      "balance_taken_up",
      "insufficient_funds",
      `The payer's balance of ${balance} is taken up by settlements under way; ${value} more is needed`,
    ),

  /** Used or cancelled on chain by another party: the token does not tell the two apart. */
  usedOnChain: () => wrongState("used_on_chain", "The authorization was used or cancelled before"),

  /** Claimed here before. Says no more, because the caller may not be its owner. */
  usedHere: () => invalid("invalid_transaction_state", "The authorization was used before"),

  beingSettled: () => wrongState("under_way", "Another request is settling this authorization"),

  settledBefore: (transaction: string) =>
    wrongState("settled_before", `This authorization was settled before, by transaction ${transaction}`),

  /** `why` is the settlement's failure, and perhaps what became of it since. */
  failed: (transaction: string, why: string) =>
    wrongState("transaction_failed", `The settlement failed in transaction ${transaction}: ${why}`),

  /** The same, once the authorization has expired without a use by anybody, for so long that no block can change that. */
  failedForGood: (transaction: string, why: string) =>
    wrongState("failed_for_good", `The settlement failed in transaction ${transaction}: ${why}`),

  assetPaused: () => wrongState("asset_paused", "The asset is paused by its issuer"),

  payerBlacklisted: () => wrongState("payer_cannot_pay", "The payer is blacklisted by the asset's issuer"),

  recipientBlacklisted: (recipient: Address) =>
    wrongState("contract_blacklisted", `The recipient ${recipient} is blacklisted by the asset's issuer`),

  contractBlacklisted: () =>
    wrongState("contract_blacklisted", "The facilitator contract is blacklisted by the asset's issuer"),
} as const satisfies Record<string, (...facts: never[]) => Invalid>;
