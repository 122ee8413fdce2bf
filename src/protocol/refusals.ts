import {
  differs,
  type Invalid,
  type InvalidPart,
  invalid,
  invalidAt,
  limitMessage,
  reasonOf,
  type Situation,
  situations,
} from "./catalogue.ts";
import { type Address, sameAddress } from "./hex.ts";
import { formatMoment, formatSpan } from "./moments.ts";
import {
  type Asset,
  builtInNetworks,
  formatNetwork,
  type NetworkName,
  type NetworkRegistry,
} from "./networks.ts";
import type { TooManyMaxima } from "./open-maxima.ts";
import type { settlementStates } from "./settlement-query.ts";
import { boundsOf, type PaymentWords, type PayToPolicy, type SignedPayment } from "./signed-payment.ts";
import { countedAsEther, describeOne, formatBoth, type TokenUnits, unitsOf } from "./token-units.ts";

/**
 * The advice in refusal messages, by the mistakes of `mistakes.ts`, which web pages with the fixtures do not need. It
 * is sent in responses, so it is plain ASCII.
 */
export const advice = {
  "networks-differ": "Pass on the requirements that the payer chose from the challenge.",
  "wrong-asset": "Use the address of the network's own USDC.",
  "pay-to-not-accepted":
    "Set payTo to the facilitator contract of the network, and your wallet with `x402-kit org set-recipient` (or `up --recipient`). Or have payments go straight to your wallet: `PAY_TO=any` (`up --pay-to any`).",
  "pay-to-not-own":
    "Set payTo to the facilitator contract, or to the wallet that the organization has on this network (`x402-kit org set-recipient`); `PAY_TO=any` allows every address.",
  "signed-for-another-recipient":
    "The challenge must name the facilitator contract as payTo before the payer signs; sign again. Or have payments go straight to your wallet: `PAY_TO=any` (`up --pay-to any`).",
  "signed-for-another-pay-to": "Sign again, for the payTo that the challenge names.",
  "amount-differs": "Sign the amount of the requirements.",
  "times-in-milliseconds": "Divide by 1000: now is Math.floor(Date.now() / 1000).",
  expired: signWithLater("validBefore"),
  "not-valid-yet": signWithZero("validAfter"),
  "signed-by-another-key":
    "Either another key signed, or for another domain: sign with the key of authorization.from, for the token's own name, version, chainId and verifyingContract, and send every member as it was signed. A smart wallet decides itself (EIP-1271), once deployed.",
} as const;

function signWithLater(end: string): string {
  return `Sign again with a later ${end}, and settle at once. A payer's clock that is behind shortens every payment.`;
}

function signWithZero(start: string): string {
  return `Sign with ${start} "0", or set the payer's clock.`;
}

/** Blocks of this age are no longer replaced. */
export const finalitySeconds = 1_800;

/** How long before its signed end a payment must arrive to be settled in time. */
export const expiryMarginSeconds = 6n;

/** The default limit for how far the signed end may be ahead of the chain's time, in seconds: a day. */
export const usualMaxValiditySeconds = 86_400n;

/** True if a time is in milliseconds: too large for seconds, and a plausible date in milliseconds. */
export const isInMilliseconds = (time: bigint) => time > 100_000_000_000n && time < 100_000_000_000_000n;

/** If an asset is another network's USDC, adds the name of that network. */
function withHome(asset: Address, network: string): string {
  const home = builtInNetworks.all.find(({ usdc }) => sameAddress(usdc.address, asset))?.name;
  return home === undefined || home === network ? asset : `${asset}, which is USDC on ${home}`;
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

/** Advice for two amounts that differ by a power of ten, with the units of their token, if known. */
export function adviceOnPower(power: number, units: TokenUnits | undefined): string {
  // Tokens are often assumed to have 18 decimals.
  const isByDecimals = units === undefined || [units.decimals, Math.abs(18 - units.decimals)].includes(power);
  const what = isByDecimals ? "the token's decimals twice or not at all" : "zeros wrongly";
  return `The two differ by 10^${power}: find which side counts ${what}${exampleOf(units)}.`;
}

/** One whole token in its smallest unit, such as `: 1 USDC is 1000000`; empty for an unknown token. */
function exampleOf(units: TokenUnits | undefined): string {
  return units === undefined ? "" : `: ${describeOne(units)}`;
}

/** The power of ten between two amounts; undefined if they do not differ by one. */
export function powerOfTenBetween(a: bigint, b: bigint): number | undefined {
  if (a === 0n || b === 0n) return undefined;
  const [large, small] = a > b ? [a, b] : [b, a];
  if (large % small !== 0n) return undefined;
  const factor = (large / small).toString();
  return /^10+$/.test(factor) ? factor.length - 1 : undefined;
}

type Window = SignedPayment["window"];

/** A validity window, as messages describe it. */
type Validity = { window: Window; words: PaymentWords; maxTimeoutSeconds?: number | undefined };

/** The problem with the timeout in a shop's offer, which its buyers sign by. */
function timeoutOffered(seconds: number, most: bigint): string {
  return `paymentRequirements.maxTimeoutSeconds is ${seconds}, and clients sign until then: offer more than ${expiryMarginSeconds} and at most ${most}; 60 is usual`;
}

/** A number, or a placeholder if it is not known beforehand. */
type Shown = bigint | string;

/** A placeholder for seconds. */
const shownSeconds = "<seconds>";

/** `why` says why a wallet is not deployed with its payment. */
function notDeployed(payer: Address, network: string, why = ""): Invalid {
  return invalid(
    "wallet_not_deployed",
    `The smart wallet ${payer} is not deployed on ${network}${why}; deploy it before paying`,
  );
}

/** The refusals of well-formed payments, each with its reason and message. The service and the fixtures share them. */
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
    return invalidAt(`network_of_${fault}`, `${at}.network`, ` must be ${known}${hint}`);
  },

  networksDiffer: (paid: NetworkName, asked: NetworkName): Invalid => ({
    ...invalid(
      "networks_differ",
      `The payment is for ${paid}, but paymentRequirements.network is ${asked}`,
      advice["networks-differ"],
    ),
    at: "paymentRequirements.network",
    got: asked,
    expected: paid,
  }),

  networkNotEnabled: (network: string, enabled: readonly string[]) =>
    invalid(
      "network_not_enabled",
      `${network} is not enabled here; enabled: ${enabled.join(", ")}. Offer and sign for one of these`,
    ),

  assetNotAccepted: (asset: Address, network: string, accepted: readonly Asset[]): Invalid => {
    const got = withHome(asset, network);
    const fact = `The asset ${got}${got === asset ? "" : ","} is not accepted on ${network}; accepted: ${listAddresses(accepted)}`;
    return {
      ...invalid("asset_not_accepted", fact, advice["wrong-asset"]),
      at: "paymentRequirements.asset",
      got,
      expected: accepted.map((one) => `${one.address} (${unitsOf(one).symbol} on ${network})`).join(" or "),
    };
  },

  /** The network's `payTo` is where payments may go besides the contract. */
  payToNotAccepted: (
    asked: Address,
    { facilitatorContract, payTo }: { facilitatorContract: Address; payTo?: PayToPolicy | undefined },
  ) => {
    const isOwnToo = payTo === "recipients";
    const own = isOwnToo ? ", or the organization's own wallet" : "";
    return differs(
      "pay_to_not_accepted",
      {
        at: "paymentRequirements.payTo",
        got: asked,
        expected: `the facilitator contract ${facilitatorContract}${own}`,
      },
      advice[isOwnToo ? "pay-to-not-own" : "pay-to-not-accepted"],
    );
  },

  schemesDiffer: (paid: string, asked: string): Invalid => ({
    ...invalid(
      "schemes_differ",
      `The payment is of scheme ${paid}, but paymentRequirements.scheme is ${asked}`,
      advice["networks-differ"],
    ),
    at: "paymentRequirements.scheme",
    got: asked,
    expected: paid,
  }),

  /** The asset is accepted, but not with this transfer method. */
  assetPaidOtherwise: (asset: Address, paidBy: string, accepted: readonly string[]) =>
    invalid(
      "asset_paid_otherwise",
      `The asset ${asset} is not paid by ${paidBy} here, but by ${accepted.join(" or ")}`,
      "Offer that as assetTransferMethod in extra, and sign again",
    ),

  /** The payer signed for another token than the requirements ask for. `at` is the member that names it, if there is one. */
  tokenDiffers: (signed: Address, asked: Address, at?: string): Invalid => ({
    ...invalid(
      "token_differs",
      `The authorization is for the token ${signed}, but the requirements ask for ${asked}`,
      "Sign again, for that token",
    ),
    ...(at !== undefined && { at }),
    got: signed,
    expected: asked,
  }),

  amountAboveMaximum: (amount: bigint, maximum: bigint) =>
    invalid(
      "amount_above_maximum",
      `paymentRequirements.amount is ${amount}, but the payer allowed ${maximum} at most`,
      "Settle no more than that",
    ),

  belowMinimum: (value: bigint, minimum: bigint) =>
    invalid(
      "amount_below_minimum",
      `The amount of ${value} is below the organization's minimum of ${minimum}`,
    ),

  valueIsZero: () => invalid("amount_zero", "The amount is 0; payments of nothing are not settled"),

  recipientDiffers: (
    to: Address,
    payTo: Address,
    network: { facilitatorContract: Address; payTo?: PayToPolicy | undefined },
    words: PaymentWords,
  ) => {
    const { facilitatorContract, payTo: policy = "contract" } = network;
    const isContract = sameAddress(payTo, facilitatorContract);
    const expected = `${isContract ? "the facilitator contract" : "the payTo of the requirements,"} ${payTo}`;
    return differs(
      "recipient_differs",
      { at: words.payTo, got: to, expected },
      advice[policy === "contract" ? "signed-for-another-recipient" : "signed-for-another-pay-to"],
    );
  },

  valueDiffers: (value: bigint, required: bigint, asset: Asset | undefined, words: PaymentWords) => {
    const units = asset && unitsOf(asset);
    const shown = (amount: bigint) => (units === undefined ? `${amount}` : formatBoth(amount, units));
    const fact = `${words.limit} is ${shown(value)}, but exactly ${shown(required)} is required`;
    return {
      ...invalid("value_differs", fact, adviceOnAmounts(value, required, asset)),
      at: words.limit,
      got: shown(value),
      expected: shown(required),
    };
  },

  tooEarly: (window: Window, now: Shown, words: PaymentWords): Invalid => {
    const { start } = boundsOf(window, words);
    const fact = `The authorization is valid ${words.startsSaid} ${formatMoment(start, now)}; the chain's time is ${now}`;
    if (isInMilliseconds(start)) {
      return { ...invalid("never_valid", fact, advice["times-in-milliseconds"]), chainTime: now };
    }
    const retryAfterSeconds = typeof now === "bigint" ? Number(window.first - now) : shownSeconds;
    const refusal = invalid("not_valid_yet", fact, signWithZero(words.start));
    return { ...refusal, retryAfterSeconds, chainTime: now };
  },

  /** `maxTimeoutSeconds` is the shop's offer; undefined if unknown. */
  tooLate: ({ window, words, maxTimeoutSeconds }: Validity, now: Shown): Invalid => {
    const isOffered = maxTimeoutSeconds !== undefined && BigInt(maxTimeoutSeconds) <= expiryMarginSeconds;
    return {
      ...invalid(
        "expired",
        `The authorization is valid ${words.endsSaid} ${formatMoment(boundsOf(window, words).end, now)}; the chain's time is ${now}, and ${expiryMarginSeconds} seconds are needed to settle`,
        isOffered ? timeoutOffered(maxTimeoutSeconds, usualMaxValiditySeconds) : signWithLater(words.end),
      ),
      chainTime: now,
    };
  },

  tooFarAhead: ({ window, words, maxTimeoutSeconds }: Validity, now: Shown, mostSeconds: bigint): Invalid => {
    const { end } = boundsOf(window, words);
    const isOffered = maxTimeoutSeconds !== undefined && BigInt(maxTimeoutSeconds) > mostSeconds;
    return {
      ...invalid(
        "valid_too_long",
        `The authorization is valid ${words.endsSaid} ${formatMoment(end, now)}; the chain's time is ${now}, and at most ${mostSeconds} seconds (${formatSpan(mostSeconds)}) ahead are accepted`,
        isInMilliseconds(end)
          ? advice["times-in-milliseconds"]
          : isOffered
            ? timeoutOffered(maxTimeoutSeconds, mostSeconds)
            : `Sign again with an earlier ${words.end}.`,
      ),
      chainTime: now,
    };
  },

  /** `mistake` is the likely mistake; see `describeWrongSignature`. */
  notSignedByPayer: (payer: Address, network: string, domain: string, mistake: string) =>
    invalid(
      "signature_wrong",
      `The signature is not that of ${payer} over this authorization on ${network} (${domain})`,
      mistake,
    ),

  walletRefuses: (payer: Address) =>
    invalid("wallet_refuses", `The contract at ${payer} does not accept the signature (EIP-1271)`),

  tokenRefusesSignature: (payer: Address, { judge }: Pick<PaymentWords, "judge">) =>
    invalid(
      "token_refuses_signature",
      `${judge} does not accept the signature for ${payer}: code at the payer's address (EIP-7702, EIP-1271) decides there`,
    ),

  /** The organization refuses payers with code. */
  payerHasCode: (payer: Address) =>
    invalid(
      "payer_has_code",
      `The payer ${payer} has code (a wallet, or EIP-7702), and this organization takes plain accounts only`,
      "Pay from a plain account",
    ),

  walletNotDeployed: (payer: Address, network: string) => notDeployed(payer, network),
  factoryNotAllowed: (payer: Address, network: string, factory: Address) =>
    notDeployed(payer, network, `, and the facilitator calls no factory ${factory.toLowerCase()}`),
  factoryFails: (payer: Address, network: string, factory: Address) =>
    notDeployed(payer, network, `, and the call of its factory ${factory.toLowerCase()} does not deploy it`),

  balanceTooSmall: (balance: Shown, value: bigint, asset: Asset | undefined) => {
    const units = asset && unitsOf(asset);
    const meant = units && countedAsEther(value, units);
    const needed = `The payer holds ${formatBoth(balance, units)}; ${formatBoth(value, units)} is needed`;
    return units === undefined || meant === undefined
      ? invalid(
          "balance_too_small",
          needed,
          `Give the payer more of the token, or fix the price if it is off by decimals${exampleOf(units)}`,
        )
      : invalid(
          "balance_too_small",
          `${needed}, perhaps of a price counted with 18 decimals`,
          `Count in the token's smallest unit: ${formatBoth(meant, units)}`,
        );
  },

  balanceTakenUp: (balance: Shown, value: bigint, asset: Asset | undefined) => {
    const units = asset && unitsOf(asset);
    return invalid(
      "balance_taken_up",
      `The payer can pay ${formatBoth(balance, units)}, which is taken up by settlements under way; ${formatBoth(value, units)} more is needed`,
    );
  },

  /** The payer's verified maxima that are not settled yet use up the balance. */
  maximaTooMany: (
    balance: bigint,
    limit: bigint,
    { taken, retryAfterSeconds }: TooManyMaxima,
    asset: Asset | undefined,
  ): Invalid => {
    const shown = (amount: bigint) => formatBoth(amount, asset && unitsOf(asset));
    const fact = `The payer can pay ${shown(balance)}, of which ${shown(taken)} is taken up by maxima verified and not settled yet; ${shown(limit)} is needed`;
    return { ...invalid("balance_taken_up", fact), retryAfterSeconds };
  },

  /** Used or cancelled on chain by someone else; the token does not tell the two apart. */
  usedOnChain: () => invalid("used_on_chain", "The authorization was used or cancelled before"),

  /** Claimed here before. Reveals no more, because the caller may not be its owner. */
  usedHere: () => invalid("used_here", "The authorization was used before"),

  beingSettled: () => invalid("under_way", "Another request is settling this authorization"),

  /** `transaction` is empty, or has no digits, if nothing was taken. */
  settledBefore: (transaction: string) => {
    const how = ["", "0x"].includes(transaction) ? "and nothing was taken" : `by transaction ${transaction}`;
    return invalid("settled_before", `This authorization was settled before, ${how}`);
  },

  /** `why` is the settlement's failure, and perhaps what happened since. */
  failed: (transaction: string, why: string): Invalid => ({
    ...invalid("transaction_failed", `The settlement failed in transaction ${transaction}: ${why}`),
    transaction,
  }),

  /** Like `failed`, once the authorization has expired unused for so long that no block can change that. */
  failedForGood: (transaction: string, why: string): Invalid => ({
    ...invalid("failed_for_good", `The settlement failed in transaction ${transaction}: ${why}`),
    transaction,
  }),

  assetPaused: () => invalid("asset_paused", "The asset is paused by its issuer"),

  payerBlacklisted: () => invalid("payer_blacklisted", "The payer is blacklisted by the asset's issuer"),

  recipientBlacklisted: (recipient: Address) =>
    invalid("recipient_blacklisted", `The recipient ${recipient} is blacklisted by the asset's issuer`),

  contractBlacklisted: () =>
    invalid("contract_blacklisted", "The facilitator contract is blacklisted by the asset's issuer"),
} as const satisfies Record<string, (...facts: never[]) => Invalid>;

/**
 * True if a payer who follows the refusal would sign a new authorization, and so might pay twice. Not if the earlier
 * request has failed for good.
 */
export function isSignedAgain({ situation }: Invalid): boolean {
  return situations[situation].nextAction === "sign_again" && situation !== "failed_for_good";
}

/**
 * The refusal for an authorization that an earlier request has used or is about to use: the same payment with other
 * requirements, or a damaged one. If payers would sign again because of it, the situation becomes that of the earlier
 * request; the reason stays.
 */
export function refuseUsed(refusal: Invalid, situation: Situation): Invalid {
  return withoutSigning(refusal, situation, "An earlier request used this authorization");
}

/**
 * The refusal for an authorization that was used or cancelled on chain and is unknown to the ledger: the payment was
 * submitted directly to the token, or the ledger that knew it is gone. An expired one must have been used in time.
 */
export function refuseUsedOnChain(refusal: Invalid): Invalid {
  if (refusal.reason === reasonOf("expired")) return refusals.usedOnChain();
  return withoutSigning(refusal, "used_on_chain", "This authorization was used or cancelled on chain");
}

/** The refusal for an authorization if the chain could not be asked whether it was used. */
export function refuseUntold(refusal: Invalid): Invalid {
  return withoutSigning(refusal, "use_unknown", "The chain could not be asked whether it was used");
}

function withoutSigning(refusal: Invalid, situation: Situation, why: string): Invalid {
  if (!isSignedAgain(refusal)) return refusal;
  const message = `${refusal.fact}. ${why}: sign no other before you know what became of it.`;
  return { ...refusal, message: limitMessage(message), situation };
}

/**
 * The situation of a caller who sends the payment of a settlement again. `deliveredAt` is null until its success is delivered.
 */
export function situationOfUse(
  state: (typeof settlementStates)[number],
  deliveredAt: unknown,
  isOwn: boolean,
): Situation {
  if (!isOwn) return "used_here";
  if (state === "failed") return "transaction_failed";
  return deliveredAt === null || state === "submitted" ? "pending" : "settled_before";
}
