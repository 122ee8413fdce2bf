import type { Authorization } from "./authorization.ts";
import type { Invalid } from "./catalogue.ts";
import { type Address, sameAddress } from "./hex.ts";
import { type Asset, findAsset } from "./networks.ts";
import { expiryMarginSeconds, refusals, usualMaxValiditySeconds } from "./refusals.ts";
import type { PaymentRequest } from "./requests.ts";

/** A network as one deployment serves it: what payments are checked against. */
export type ServedNetwork = {
  name: string;
  /** Where payers send to. */
  facilitatorContract: Address;
  /** The assets that may be paid with. */
  assets: readonly Asset[];
  /** How far ahead of the chain's time `validBefore` may be, in seconds; {@link usualMaxValiditySeconds} by default. */
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

  recipientIsContract: ({ authorization }, { facilitatorContract }) =>
    sameAddress(authorization.to, facilitatorContract)
      ? undefined
      : refusals.recipientIsNotContract(authorization.to, facilitatorContract),

  valueIsExact: ({ authorization: { value }, requirements: { amount, asset } }, { assets }) =>
    value === amount ? undefined : refusals.valueDiffers(value, amount, findAsset(assets, asset)),

  valueIsPositive: ({ authorization }, { allowZeroValue = false }) =>
    authorization.value > 0n || allowZeroValue ? undefined : refusals.valueIsZero(),
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
 * Whether the chain's clock is inside the payer's window. Both bounds are exclusive, as in EIP-3009, and
 * `validBefore` must be at least {@link expiryMarginSeconds} away, and not further than the network allows: until then the
 * settlement is watched, and its value reserved.
 *
 * @param chainTime in unix seconds
 */
export function checkValidityWindow(
  { validAfter, validBefore }: Pick<Authorization, "validAfter" | "validBefore">,
  chainTime: bigint,
  { maxValiditySeconds = usualMaxValiditySeconds }: ServedNetwork,
): Invalid | undefined {
  if (chainTime <= validAfter) return refusals.tooEarly(validAfter, chainTime);
  if (validBefore < chainTime + expiryMarginSeconds) return refusals.tooLate(validBefore, chainTime);
  if (validBefore > chainTime + maxValiditySeconds) {
    return refusals.tooFarAhead(validBefore, chainTime, maxValiditySeconds);
  }
  return undefined;
}
