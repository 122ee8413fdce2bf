import type { Invalid } from "./catalogue.ts";
import { type Address, sameAddress } from "./hex.ts";
import { type Asset, findAsset } from "./networks.ts";
import { expiryMarginSeconds, refusals, usualMaxValiditySeconds } from "./refusals.ts";
import type { PaymentRequest } from "./requests.ts";
import { goesStraight, type PayToPolicy, type SignedPayment } from "./signed-payment.ts";

/** A network as one deployment serves it: what payments are checked against. */
export type ServedNetwork = {
  name: string;
  /** Where payers may always send to. */
  facilitatorContract: Address;
  /** Where else they may; nowhere else by default. */
  payTo?: PayToPolicy | undefined;
  /** The assets that may be paid with. */
  assets: readonly Asset[];
  /** How far ahead of the chain's time a payment may be valid, in seconds; {@link usualMaxValiditySeconds} by default. */
  maxValiditySeconds?: bigint;
  /** Whether payments of 0 are settled; they are refused by default. */
  allowZeroValue?: boolean;
};

type PureCheck = (request: PaymentRequest, network: ServedNetwork) => Invalid | undefined;

/** The checks that need no chain and no ledger, in their order. */
export const pureCheckNames = [
  "assetIsAllowed",
  "payToIsAccepted",
  "recipientIsPayTo",
  "valueIsExact",
  "valueIsPositive",
] as const;

export type PureCheckName = (typeof pureCheckNames)[number];

/** The checks of a payment, by name, in the order in which verify makes them; settle may make the last three again. */
export const checkNames = [
  "networkIsEnabled",
  ...pureCheckNames,
  "payToIsOwn",
  "minimumIsReached",
  "signatureHolds",
  "authorizationIsFree",
  "windowIsOpen",
  "simulationSucceeds",
  "payerIsAccepted",
] as const;

export type CheckName = (typeof checkNames)[number];

const pureChecks: Readonly<Record<PureCheckName, PureCheck>> = {
  assetIsAllowed: ({ requirements }, network) =>
    findAsset(network.assets, requirements.asset) !== undefined
      ? undefined
      : refusals.assetNotAccepted(requirements.asset, network.name, network.assets),

  payToIsAccepted: ({ requirements: { payTo } }, network) =>
    payTo === undefined || (network.payTo ?? "contract") !== "contract" || !goesStraight({ payTo }, network)
      ? undefined
      : refusals.payToNotAccepted(payTo, network),

  recipientIsPayTo: ({ payment, requirements }, network) => {
    const { payTo = network.facilitatorContract } = requirements;
    return sameAddress(payment.payTo, payTo)
      ? undefined
      : refusals.recipientDiffers(payment.payTo, payTo, network);
  },

  valueIsExact: ({ payment: { limit }, requirements: { amount, asset } }, { assets }) =>
    limit === amount ? undefined : refusals.valueDiffers(limit, amount, findAsset(assets, asset)),

  valueIsPositive: ({ payment }, { allowZeroValue = false }) =>
    payment.limit > 0n || allowZeroValue ? undefined : refusals.valueIsZero(),
};

/** The first refusal that follows from the request alone; undefined without one. `onCheck` is called for each check. */
export function checkTerms(
  request: PaymentRequest,
  network: ServedNetwork,
  onCheck?: (check: PureCheckName, refusal: Invalid | undefined) => void,
): Invalid | undefined {
  for (const name of pureCheckNames) {
    const refusal = pureChecks[name](request, network);
    onCheck?.(name, refusal);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/**
 * What a payment may not go to that is allowed to the organization's own wallets alone.
 *
 * @param recipient of the organization on the network; undefined where it has none, or none is known
 */
export function checkOwnPayTo(
  payment: Pick<SignedPayment, "payTo">,
  network: Pick<ServedNetwork, "facilitatorContract" | "payTo">,
  recipient: Address | undefined,
): Invalid | undefined {
  if (network.payTo !== "recipients" || !goesStraight(payment, network)) return undefined;
  const isOwn = recipient !== undefined && sameAddress(payment.payTo, recipient);
  return isOwn ? undefined : refusals.payToNotAccepted(payment.payTo, network);
}

/**
 * To whom a payment goes, that is good on its face: where it was signed to, or the recipient of the organization, which is
 * undefined where it has none.
 */
export function payeeOf(
  payment: Pick<SignedPayment, "payTo">,
  network: Pick<ServedNetwork, "facilitatorContract" | "payTo">,
  recipient: Address | undefined,
): Address | undefined {
  return network.payTo === "any" && goesStraight(payment, network) ? payment.payTo : recipient;
}

/**
 * Whether the chain's clock is inside the payer's window. Its end must be at least {@link expiryMarginSeconds} away, and not
 * further than the network allows: until then the settlement is watched, and its value reserved.
 *
 * @param chainTime in unix seconds
 */
export function checkValidityWindow(
  { window: { first, last } }: Pick<SignedPayment, "window">,
  chainTime: bigint,
  { maxValiditySeconds = usualMaxValiditySeconds }: ServedNetwork,
): Invalid | undefined {
  // The sentences name the bounds of EIP-3009, which are outside of the window.
  const [after, before] = [first - 1n, last + 1n];
  if (chainTime < first) return refusals.tooEarly(after, chainTime);
  if (before < chainTime + expiryMarginSeconds) return refusals.tooLate(before, chainTime);
  if (before > chainTime + maxValiditySeconds) {
    return refusals.tooFarAhead(before, chainTime, maxValiditySeconds);
  }
  return undefined;
}
