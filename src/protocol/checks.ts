import type { Dialect, Invalid } from "./catalogue.ts";
import { type Address, sameAddress } from "./hex.ts";
import { type Asset, findAsset, isPaidBy } from "./networks.ts";
import type { Operation } from "./problems.ts";
import { expiryMarginSeconds, refusals, usualMaxValiditySeconds } from "./refusals.ts";
import type { PaymentRequest } from "./requests.ts";
import { boundsOf, goesStraight, type PayToPolicy, type SignedPayment } from "./signed-payment.ts";
import type { Strictness } from "./strictness.ts";

/** A network as one deployment serves it: what payments are checked against. */
export type ServedNetwork = {
  name: string;
  /** Where payers may always send to, and which forwards it: what is signed, and `payTo` of the requirements. */
  facilitatorContract: Address;
  /** Contracts that were offered before: payments that were signed for one of them still settle through it. */
  formerContracts?: readonly Address[] | undefined;
  /** Where else they may; nowhere else by default. */
  payTo?: PayToPolicy | undefined;
  /** The assets that may be paid with; anything else is `invalid_payment_requirements`. */
  assets: readonly Asset[];
  /** How far ahead of the chain's time a payment may be valid, in seconds; {@link usualMaxValiditySeconds} by default. */
  maxValiditySeconds?: bigint;
  /** True if payments of 0 are settled; they are refused by default. */
  allowZeroValue?: boolean;
  /** The factories whose wallets are deployed with their first payment (ERC-6492); none by default. */
  walletFactories?: readonly Address[] | undefined;
  /** Which approvals of Permit2 are submitted for payers, who have no gas of their own; none by default. */
  gasSponsoring?: readonly GasSponsoring[] | undefined;
  /** How strict the facilitator is if the specification does not decide; `spec` by default, which accepts what it does not forbid. */
  strictness?: Strictness | undefined;
  /** Who signs claims and refunds of scheme “batch-settlement” for shops without a key of their own; nobody by default. */
  receiverAuthorizer?: Address | undefined;
  /** Which names its reasons have; `spec` by default. */
  reasons?: Dialect | undefined;
};

/**
 * Extensions of x402 by which an approval of Permit2 comes with the payment, so that the payer needs no gas: signed for the token
 * (EIP-2612), and settled in the payment's own transaction; or as a transaction of the payer's, which is sent before it.
 */
export const gasSponsorings = ["eip2612GasSponsoring", "erc20ApprovalGasSponsoring"] as const;

export type GasSponsoring = (typeof gasSponsorings)[number];

/** The requirements of one payment method, besides those of all. */
export type MethodTerms = {
  /** The transfer method that an asset must have; “any” where its tokens were moved before. */
  readonly transfer: string;
  /** True if what is signed is a maximum, of which settle may take less. */
  readonly takesLess: boolean;
  /** “own” if its checks judge its amounts: what is signed is not the price of one purchase. */
  readonly amounts?: "own";
  /** Of those methods: refuses a payment that cannot cover the price of any purchase it comes with. */
  readonly checkPrice?: TermsCheck;
  /** The contract that alone may submit a payment, if the payer named one. */
  submitter?(payment: SignedPayment): Address | undefined;
  /** Each finds a problem with what was signed, so that it cannot be settled here; undefined where there is none. */
  readonly checks?: readonly TermsCheck[];
};

/** The network with another facilitator contract than the one it offers. */
export function withContract<N extends { facilitatorContract: Address }>(network: N, contract: Address): N {
  return sameAddress(contract, network.facilitatorContract)
    ? network
    : { ...network, facilitatorContract: contract };
}

/**
 * The network with the contract that a payment is for: a former one if the payer signed for that, otherwise the one that is
 * offered. Shops cache what they were offered.
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

/** A check of a request that needs no chain and no ledger. */
export type TermsCheck = (
  request: PaymentRequest,
  network: ServedNetwork,
  checking: Checking,
) => Invalid | undefined;

/** The checks that need no chain and no ledger, in their order. */
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

/** The checks of a payment, by name, in the order in which verify makes them; settle may make again those from `windowIsOpen` on. */
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

/** Refuses a payment that is signed to another than the seller asks for. */
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
    // Without a list, only what EIP-3009 needs can be missing.
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

/** The pure checks in which no setting has a part once it is known that the payment was signed for us. */
const requestCheckNames = ["recipientIsPayTo", "valueIsExact", "assetIsSigned"] as const;

/** The first refusal that follows from the request alone; undefined without one. `onCheck` is called for each check. */
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
 * All refusals that follow from the request alone, in the order in which {@link checkTerms} looks for them: for people, who want
 * to hear of every one.
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

/** The same of a request whose payment was claimed: the settings of today say nothing about that. */
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
 * Refuses a recipient where payments may go to the organization's own wallets only.
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

/** The values that a payment's window is judged by. */
type WindowRequest = Pick<PaymentRequest, "words"> & {
  payment: Pick<SignedPayment, "window">;
  requirements: Pick<PaymentRequest["requirements"], "maxTimeoutSeconds">;
};

/**
 * Checks whether the chain's clock is inside the payer's window. The end that was signed must be at least {@link expiryMarginSeconds}
 * away, and not further than the network allows: until then the settlement is watched, and its value reserved.
 *
 * @param chainTime in unix seconds
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
