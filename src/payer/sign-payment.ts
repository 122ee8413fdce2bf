import { buildRequirements, type WrittenRequirements, writePayload } from "../methods/build-request.ts";
import { type AuthorizationSigner, createDigestSigner } from "../methods/exact-eip3009/authorization.ts";
import type { PayableMethod } from "../methods/method.ts";
import { methodsOf, payableMethodOf, type Scheme } from "../methods/method-lists.ts";
import type { TransferMethod } from "../methods/methods.ts";
import type { PayerTerms } from "../methods/payer-terms.ts";
import { timesFrom } from "../methods/payment-times.ts";
import type { PayerSigner } from "../methods/permit2/sign-permit.ts";
import { type Address, type Hex, sameAddress } from "../protocol/hex.ts";
import { type Asset, isPaidBy, type Network } from "../protocol/networks.ts";
import { encodeHeader } from "../protocol/payment-headers.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { KitError } from "../util/errors.ts";
import { membersOf } from "../util/json.ts";
import { nearest } from "../util/text.ts";
import { harnessAddresses, tokenNamed } from "./local-chains.ts";
import { type Amount, type PaymentTerms, toUnits, usual } from "./terms.ts";
import { type TestPayer, type TestPayerName, testPayers } from "./test-payers.ts";
import { wrapForUndeployed } from "./undeployed-wallet.ts";

/*
 * Makes payments. Terms, or a shop's 402 (`read-offer.ts`), become an offer; an offer becomes a signed payment; the payment
 * becomes request bodies and a header. Runs in a browser, except for the header.
 */

/** An offer that a payer accepts, with all terms set. */
export type Offer<
  N = Pick<Network, "name" | "caip2" | "chainId">,
  Written extends { network: string } = Readonly<Record<string, unknown>> & { network: string },
  Resource = unknown,
> = {
  x402Version: X402Version;
  network: N;
  scheme: Scheme;
  method: TransferMethod;
  asset: Asset;
  payTo: Address;
  /** The amount to sign, in the asset's smallest unit; in scheme "upto" the maximum. */
  value: bigint;
  validForSeconds: number;
  /** The requirements, as the shop wrote them. */
  written: Written;
  /** The `resource` of version 2, as the shop wrote it. */
  resource: Resource;
};

/** An offer that the kit wrote. */
export type OwnOffer<N> = Offer<N, WrittenRequirements, { url: string }>;

/** A network to sign payments for. */
export type PayingNetwork = Pick<Network, "name" | "caip2" | "chainId"> & {
  facilitatorContract: Address;
  /** The default payee. */
  payTo: Address;
  asset: Asset;
  /** Other accepted assets. */
  tokens?: Readonly<Record<string, Asset>> | undefined;
};

/**
 * The payment method for a scheme: the one with the given transfer method, or the first that can move the asset.
 *
 * @throws {KitError} if the scheme does not have that transfer method
 */
export function methodFor(
  { scheme = usual.scheme, method: transfer }: Pick<PaymentTerms, "scheme" | "method">,
  asset: Asset,
): PayableMethod<Scheme, TransferMethod> {
  const able = methodsOf(scheme);
  const usualOne = able.find((method) => isPaidBy(asset, method.transfer)) ?? able[0];
  const found = transfer === undefined ? usualOne : able.find((method) => method.transfer === transfer);
  if (found !== undefined) return found;
  const known = able.map((method) => method.transfer).join(" or ");
  throw new KitError(`Scheme ${scheme} is paid by ${known}, not by ${transfer}`, {
    hints: ["Leave the method out."],
  });
}

/**
 * Finds a network by its name in either version of x402; without a name, returns the first one.
 *
 * @throws {KitError} if there is none
 */
export function findNetworkNamed<N extends Pick<Network, "name" | "caip2">>(
  networks: readonly N[],
  wanted: string | undefined,
): N {
  const names = networks.map(({ name }) => name);
  const found =
    wanted === undefined ? networks[0] : networks.find(({ name, caip2 }) => [name, caip2].includes(wanted));
  if (found !== undefined) return found;
  throw new KitError(
    `There is no network "${wanted}" here; did you mean ${nearest(wanted ?? "", names, 1)}? There is ${names.join(", ")}`,
  );
}

/**
 * Fills in the missing terms and makes the offer of a shop from them.
 *
 * @returns the offer, and the amount that settle takes
 * @throws {KitError} if there is no such network or token, or the terms are incompatible
 */
export function agree<N extends PayingNetwork>(
  terms: Omit<PaymentTerms, "payer" | "network"> & { network?: string | undefined },
  networks: readonly N[],
): OwnOffer<N> & { amount: bigint } {
  const { x402Version = usual.x402Version, resource = usual.resource } = terms;
  const { validForSeconds = usual.validForSeconds } = terms;
  const network = findNetworkNamed(networks, terms.network);
  const asset = tokenNamed(network, terms.asset);
  const { scheme, transfer: method, versions, takesLess, paysPlain } = methodFor(terms, asset);
  if (!versions.includes(x402Version)) {
    throw new KitError(`Version ${x402Version} of x402 has no payments by ${method}`, {
      hints: [`Leave x402Version out, or ask for ${versions.join(" or ")}.`],
    });
  }
  if (terms.max !== undefined && !takesLess) {
    throw new KitError("Only scheme upto has a maximum", { hints: ['Ask for it: { scheme: "upto" }.'] });
  }
  const read = (amount: Amount | undefined) => (amount === undefined ? undefined : toUnits(amount, asset));
  const given = read(terms.amount);
  const hundredth = 10n ** BigInt(Math.max(asset.decimals - 2, 0));
  const isWithin = takesLess && given !== undefined && given < hundredth;
  const value = read(terms.max) ?? (isWithin ? hundredth : (given ?? hundredth));
  const payTo = terms.payTo ?? network.payTo;
  if (paysPlain === true) requirePlain(payTo, network);
  const offer = { x402Version, network, scheme, method, asset, payTo, value, validForSeconds };
  return { ...makeOffer(offer, resource), amount: given ?? value };
}

/**
 * Requires a payee other than the facilitator contract, for schemes whose payments the contract would not forward.
 *
 * @throws {KitError} if the payee is the facilitator contract
 */
export function requirePlain(
  payTo: Address,
  { facilitatorContract, payTo: usualPayTo }: Pick<PayingNetwork, "facilitatorContract" | "payTo">,
): void {
  if (!sameAddress(payTo, facilitatorContract)) return;
  // If payments go to the contract by default, other payees are refused.
  const hint = sameAddress(usualPayTo, facilitatorContract)
    ? "Start it with the option payTo (`up --pay-to recipients`)."
    : `Name another payTo, such as ${usualPayTo}.`;
  throw new KitError("Scheme batch-settlement pays plain receivers, not the facilitator contract", {
    hints: [hint],
  });
}

/** The facilitator's own terms in an offer, on local chains. */
const shopTerms = { receiverAuthorizer: harnessAddresses.authorizer } as const;

/** Writes an offer as a shop would. */
export function makeOffer<N extends Omit<PayingNetwork, "payTo" | "asset">>(
  offer: Omit<OwnOffer<N>, "written" | "resource">,
  url: string,
): OwnOffer<N> {
  const { scheme, method, network, asset, value: amount } = offer;
  const extra = methodsOf(scheme, method)[0]?.extra({ ...shopTerms, ...network, assets: [asset] }) ?? {};
  return {
    ...offer,
    written: buildRequirements({ ...offer, amount, resource: url, extra }),
    resource: { url },
  };
}

/** Signs a payment for an offer, with any payment method; `instead` overrides terms of the offer. */
export function signOffer(
  signer: PayerSigner | KeySigner,
  offer: Omit<Offer, "resource" | "written"> & { written: object },
  now: bigint,
  instead: Partial<PayerTerms> = {},
): Promise<SignedPayment> {
  const { scheme, method: transfer, asset, network, payTo: to, value, validForSeconds, written } = offer;
  const { chainId } = network;
  const { extra } = membersOf(written);
  const times = timesFrom(now, { until: validForSeconds });
  const [method] = methodsOf(scheme, transfer);
  if (method === undefined) throw new Error(`unknown payment method: ${scheme} by ${transfer}`);
  return method.sign(signer, { asset, chainId, to, value, extra, ...times, ...instead });
}

/** The bodies of the verify and settle calls, which differ if less than the maximum is settled. */
export function bodiesOf<Written extends { network: string }, Resource>(
  offer: Pick<Offer<unknown, Written, Resource>, "x402Version" | "written" | "resource">,
  payment: SignedPayment,
  { amount, extensions }: { amount?: bigint | undefined; extensions?: object | undefined } = {},
) {
  const { x402Version, written } = offer;
  const paymentPayload = writePayload(offer, payableMethodOf(payment).write(payment), extensions);
  const request = { x402Version, paymentPayload, paymentRequirements: written };
  const isLess = amount !== undefined && amount !== payment.limit;
  const settled = isLess ? { ...written, amount: `${amount}` } : written;
  return { request, settleRequest: isLess ? { ...request, paymentRequirements: settled } : request };
}

/** The header that carries a payment to a shop. */
export function headerOf(x402Version: X402Version, paymentPayload: object): { name: string; value: string } {
  const name = x402Version === 1 ? "X-PAYMENT" : "PAYMENT-SIGNATURE";
  return { name, value: encodeHeader(paymentPayload) };
}

/** Signs EIP-3009 typed data, and any digest. */
export type KeySigner = AuthorizationSigner & {
  signDigest(digest: Hex): Hex;
  /** The account of the key, if the payer is a wallet. */
  readonly owner?: Address | undefined;
};

/**
 * Creates a signer for an account. An account with a key, delegated or not, signs directly; a contract wallet's owner signs
 * for it; for the undeployed wallet, the owner's signature is wrapped with the wallet's deployment (ERC-6492).
 *
 * @param payer the name of a test payer, or another account with the key that signs for it
 * @param sign signs a digest with a key
 */
export function signerFor(
  payer: TestPayerName | Pick<TestPayer, "address" | "privateKey" | "owner">,
  sign: (digest: Hex, privateKey: Hex) => Hex,
): KeySigner {
  const { address, privateKey, owner }: Pick<TestPayer, "address" | "privateKey" | "owner"> =
    typeof payer === "string" ? testPayers[payer] : payer;
  const signDigest = (digest: Hex): Hex => {
    const signature = sign(digest, privateKey);
    return payer === "undeployedWallet" ? wrapForUndeployed(signature) : signature;
  };
  return { ...createDigestSigner(address, signDigest), signDigest, owner };
}
