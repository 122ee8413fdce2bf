import type { Invalid } from "./catalogue.ts";
import { type Address, sameAddress } from "./hex.ts";
import { type Asset, findAsset } from "./networks.ts";
import { expiryMarginSeconds, refusals, usualMaxValiditySeconds } from "./refusals.ts";
import type { PaymentRequest } from "./requests.ts";
import type { SignedPayment } from "./signed-payment.ts";

/** A network as one deployment serves it: what payments are checked against. */
export type ServedNetwork = {
  name: string;
  /** Where payers send to. */
  facilitatorContract: Address;
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
  "payToIsContract",
  "recipientIsContract",
  "valueIsExact",
  "valueIsPositive",
] as const;

export type PureCheckName = (typeof pureCheckNames)[number];

/** The checks of a payment, by name, in the order in which verify makes them; settle may make the last three again. */
export const checkNames = [
  "networkIsEnabled",
  ...pureCheckNames,
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

  payToIsContract: ({ requirements }, { facilitatorContract }) =>
    requirements.payTo === undefined || sameAddress(requirements.payTo, facilitatorContract)
      ? undefined
      : refusals.payToIsNotContract(requirements.payTo, facilitatorContract),

  recipientIsContract: ({ payment: { payTo } }, { facilitatorContract }) =>
    sameAddress(payTo, facilitatorContract)
      ? undefined
      : refusals.recipientIsNotContract(payTo, facilitatorContract),

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
