import type { Dialect, Invalid } from "./catalogue.ts";
import { type Address, sameAddress } from "./hex.ts";
import { type Asset, findAsset, isPaidBy } from "./networks.ts";
import type { Operation } from "./problems.ts";
import { expiryMarginSeconds, refusals, usualMaxValiditySeconds } from "./refusals.ts";
import type { PaymentRequest } from "./requests.ts";
import { boundsOf, goesStraight, type PayToPolicy, type SignedPayment } from "./signed-payment.ts";
import type { Strictness } from "./strictness.ts";

/** A network as a deployment serves it: what payments are checked against. */
export type ServedNetwork = {
  name: string;
  /** The contract that payers may always pay to, and that forwards the money: the signed recipient and `payTo`. */
  facilitatorContract: Address;
  /** Contracts that were offered before: payments signed for one of them still settle through it. */
  formerContracts?: readonly Address[] | undefined;
  /** Where else payments may go; nowhere else by default. */
  payTo?: PayToPolicy | undefined;
  /** The assets that may be paid with; anything else is `invalid_payment_requirements`. */
  assets: readonly Asset[];
  /** How far ahead of the chain's time a payment may be valid, in seconds; {@link usualMaxValiditySeconds} by default. */
  maxValiditySeconds?: bigint;
  /** True if payments of 0 are settled; they are refused by default. */
  allowZeroValue?: boolean;
  /** The factories whose wallets are deployed with their first payment (ERC-6492); none by default. */
  walletFactories?: readonly Address[] | undefined;
  /** The Permit2 approvals that are submitted for payers without gas of their own; none by default. */
  gasSponsoring?: readonly GasSponsoring[] | undefined;
  /** How strict to be where the specification leaves room; `spec` by default, which accepts what is not forbidden. */
  strictness?: Strictness | undefined;
  /** Who signs batch-settlement claims and refunds for shops without a key of their own; nobody by default. */
  receiverAuthorizer?: Address | undefined;
  /** The naming of its reasons; `spec` by default. */
  reasons?: Dialect | undefined;
};

/**
 * The x402 extensions that bring a Permit2 approval along with the payment, so that the payer needs no gas. It is
 * signed for the token (EIP-2612) and settled together with the payment, or is a transaction that is sent first.
 */
export const gasSponsorings = ["eip2612GasSponsoring", "erc20ApprovalGasSponsoring"] as const;

export type GasSponsoring = (typeof gasSponsorings)[number];

/** The requirements of one payment method, in addition to the common ones. */
export type MethodTerms = {
  /** The transfer method that an asset must support; “any” if its tokens were moved before. */
  readonly transfer: string;
  /** True if the signed amount is a maximum, of which settle may take less. */
  readonly takesLess: boolean;
  /** “own” if the method's checks judge its amounts: the signed amount is not the price of one purchase. */
  readonly amounts?: "own";
  /** For methods with “own” amounts: refuses a payment that cannot cover the price of its purchase. */
  readonly checkPrice?: TermsCheck;
  /** The only contract that may submit a payment, if the payer named one. */
  submitter?(payment: SignedPayment): Address | undefined;
  /** Each finds a problem with the signed message because of which it cannot be settled here, otherwise undefined. */
  readonly checks?: readonly TermsCheck[];
};

/** Returns the network with another facilitator contract than the one it offers. */
export function withContract<N extends { facilitatorContract: Address }>(network: N, contract: Address): N {
  return sameAddress(contract, network.facilitatorContract)
    ? network
    : { ...network, facilitatorContract: contract };
}

/**
 * Returns the network with the contract that a payment is for: a former one if the payer signed for it, otherwise the
 * current one. Shops cache offers.
 */
export function forPayment<N extends Pick<ServedNetwork, "facilitatorContract" | "formerContracts">>(
  network: N,
  payment: SignedPayment,
  method: Pick<MethodTerms, "submitter">,
): N {
  const { formerContracts = [] } = network;
  if (formerContracts.length === 0) return network;
  const signedFor = [method.submitter?.(payment), payment.payTo];
  const former = formerContracts.find((contract) =>
    signedFor.some((address) => address !== undefined && sameAddress(address, contract)),
  );
  return former === undefined ? network : withContract(network, former);
}

/** The operation that a request is checked for, and its payment method. */
export type Checking = { method: MethodTerms; operation: Operation };

/** A check of a request that needs neither chain nor ledger. */
export type TermsCheck = (
  request: PaymentRequest,
  network: ServedNetwork,
  checking: Checking,
) => Invalid | undefined;

/** The checks that need neither chain nor ledger, in order. */
export const pureCheckNames = [
  "assetIsAllowed",
  "payToIsAccepted",
  "isSignedForUs",
  "recipientIsPayTo",
  "valueIsExact",
  "assetIsSigned",
  "valueIsPositive",
] as const;

export type PureCheckName = (typeof pureCheckNames)[number];

/** The checks of a payment, in the order in which verify makes them; settle may repeat those from `windowIsOpen` on. */
export const checkNames = [
  "networkIsEnabled",
  ...pureCheckNames,
  "formIsOfReference",
  "payToIsOwn",
  "minimumIsReached",
  "signatureHolds",
  "authorizationIsFree",
  "windowIsOpen",
  "simulationSucceeds",
  "payerIsAccepted",
  "maximumIsCovered",
] as const;

export type CheckName = (typeof checkNames)[number];

/** Refuses a payment whose signed recipient differs from the one that the seller asks for. */
export const recipientIsPayTo: TermsCheck = ({ payment, requirements, words }, network) => {
  const { payTo = network.facilitatorContract } = requirements;
  return sameAddress(payment.payTo, payTo)
    ? undefined
    : refusals.recipientDiffers(payment.payTo, payTo, network, words);
};

const pureChecks: Readonly<Record<PureCheckName, TermsCheck>> = {
  assetIsAllowed({ requirements }, network, { method }) {
    const asset = findAsset(network.assets, requirements.asset);
    if (asset === undefined) {
      return refusals.assetNotAccepted(requirements.asset, network.name, network.assets);
    }
    if (method.transfer === "any" || isPaidBy(asset, method.transfer)) return undefined;
    // Without a list, only the requirements of EIP-3009 can be missing.
    const accepted = asset.transfers?.filter((other) => isPaidBy(asset, other)) ?? ["permit2"];
    return refusals.assetPaidOtherwise(requirements.asset, method.transfer, accepted);
  },

  payToIsAccepted: ({ requirements: { payTo } }, network) =>
    payTo === undefined || (network.payTo ?? "contract") !== "contract" || !goesStraight({ payTo }, network)
      ? undefined
      : refusals.payToNotAccepted(payTo, network),

  recipientIsPayTo,

  isSignedForUs(request, network, checking) {
    for (const check of checking.method.checks ?? []) {
      const refusal = check(request, network, checking);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  },

  valueIsExact(request, network, checking) {
    const {
      payment: { limit },
      requirements: { amount, asset },
      words,
    } = request;
    const { method, operation } = checking;
    if (method.amounts) return method.checkPrice?.(request, network, checking);
    if (method.takesLess && operation === "settle") {
      return amount <= limit ? undefined : refusals.amountAboveMaximum(amount, limit);
    }
    return limit === amount
      ? undefined
      : refusals.valueDiffers(limit, amount, findAsset(network.assets, asset), words);
  },

  assetIsSigned: ({ payment, requirements, words }) =>
    sameAddress(payment.asset, requirements.asset)
      ? undefined
      : refusals.tokenDiffers(payment.asset, requirements.asset, words.asset),

  valueIsPositive: ({ payment }, { allowZeroValue = false }, { method }) =>
    payment.limit > 0n || allowZeroValue || method.amounts ? undefined : refusals.valueIsZero(),
};

/** The checks that do not depend on settings once the payment is known to be signed for us. */
const requestCheckNames = ["recipientIsPayTo", "valueIsExact", "assetIsSigned"] as const;

/** The first refusal that follows from the request alone, or undefined. `onCheck` is called for each check. */
export function checkTerms(
  request: PaymentRequest,
  network: ServedNetwork,
  checking: Checking,
  onCheck?: (check: PureCheckName, refusal: Invalid | undefined) => void,
  names: readonly PureCheckName[] = pureCheckNames,
): Invalid | undefined {
  for (const name of names) {
    const refusal = pureChecks[name](request, network, checking);
    onCheck?.(name, refusal);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/**
 * All refusals that follow from the request alone, in the order of {@link checkTerms}; for people, who want to see every one.
 */
export function refuseTerms(
  request: PaymentRequest,
  network: ServedNetwork,
  checking: Checking,
  names: readonly PureCheckName[] = pureCheckNames,
): readonly Invalid[] {
  const { checks = [] } = checking.method;
  return names
    .flatMap((name) => (name === "isSignedForUs" ? checks : [pureChecks[name]]))
    .flatMap((check) => check(request, network, checking) ?? []);
}

/** Like {@link checkTerms}, for a request whose payment was claimed: today's settings do not apply to it. */
export function checkClaimed(
  request: PaymentRequest,
  network: ServedNetwork,
  checking: Checking,
  onCheck?: (check: PureCheckName, refusal: Invalid | undefined) => void,
): Invalid | undefined {
  const { payTo = request.payment.payTo, ...requirements } = request.requirements;
  const claimed = { ...request, requirements: { ...requirements, payTo } };
  return checkTerms(claimed, network, checking, onCheck, requestCheckNames);
}

/**
 * Refuses other recipients if payments may only go to the contract or the organization's own wallet.
 *
 * @param recipient the organization's recipient on the network; undefined if it has none, or it is unknown
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
 * The receiver of a payment that looks good: the signed recipient if the policy is `any`, otherwise the
 * organization's recipient, which is undefined if it has none.
 */
export function payeeOf(
  payment: Pick<SignedPayment, "payTo">,
  network: Pick<ServedNetwork, "facilitatorContract" | "payTo">,
  recipient: Address | undefined,
): Address | undefined {
  return network.payTo === "any" && goesStraight(payment, network) ? payment.payTo : recipient;
}

/** The values that decide whether a payment's window is accepted. */
type WindowRequest = Pick<PaymentRequest, "words"> & {
  payment: Pick<SignedPayment, "window">;
  requirements: Pick<PaymentRequest["requirements"], "maxTimeoutSeconds">;
};

/**
 * Checks that the chain's time is inside the payer's window. The signed end must be at least {@link expiryMarginSeconds} away,
 * and not further than the network allows: until then the settlement is watched and its value reserved.
 *
 * @param chainTime in Unix seconds
 */
export function checkValidityWindow(
  { payment: { window }, words, requirements: { maxTimeoutSeconds } }: WindowRequest,
  chainTime: bigint,
  { maxValiditySeconds = usualMaxValiditySeconds }: ServedNetwork,
): Invalid | undefined {
  const { end } = boundsOf(window, words);
  if (chainTime < window.first) return refusals.tooEarly(window, chainTime, words);
  const validity = { window, words, maxTimeoutSeconds };
  if (end < chainTime + expiryMarginSeconds) return refusals.tooLate(validity, chainTime);
  if (end > chainTime + maxValiditySeconds) {
    return refusals.tooFarAhead(validity, chainTime, maxValiditySeconds);
  }
  return undefined;
}
