import { buildBody, type RequirementParts, type WrittenRequest } from "../methods/build-request.ts";
import { methodOf } from "../methods/methods.ts";
import { timesFrom } from "../methods/payment-times.ts";
import { signTerms, transferMethodOf } from "../methods/sign-terms.ts";
import type { Address } from "../protocol/hex.ts";
import { type Asset, type Network, type TransferMethod, usualMethod } from "../protocol/networks.ts";
import { encodeHeader } from "../protocol/payment-headers.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { maxUint256 } from "../protocol/wire-values.ts";
import { KitError } from "../util/errors.ts";
import { nearest } from "../util/text.ts";
import { tokenNamed } from "./local-chains.ts";
import type { Breakage, PaymentOrder } from "./payment-order.ts";
import { payloadFor, readChallenge, readOffer } from "./read-offer.ts";
import { createPayerSigner, type KeySigner, signerNamed } from "./sign-as.ts";
import { testPayers } from "./test-payers.ts";

export type OrderNetwork = Pick<Network, "name" | "caip2" | "chainId"> & {
  facilitatorContract: Address;
  /** Where payments go by default. */
  payTo: Address;
  asset: Asset;
  /** The accepted assets besides. */
  tokens?: Readonly<Record<string, Asset>> | undefined;
};

/** A signed payment as it travels. */
export type SignedOrder = {
  /** The body of a verify. */
  body: object;
  /** The body of a settle, which takes less if scheme “upto” is ordered for less than the maximum. */
  settleBody: object;
  /** The header that buys at a shop. */
  header: { name: "X-PAYMENT" | "PAYMENT-SIGNATURE"; value: string };
  payer: Address;
  network: string;
};

/**
 * Signs what a test in a language without own cryptography has ordered.
 *
 * @param networks those that run
 * @param readNow the time of a network's chain, in unix seconds
 * @throws {KitError} when there is no such payer or network, or the members do not go together
 */
export async function signOrder(
  order: PaymentOrder,
  networks: readonly OrderNetwork[],
  readNow: (network: string) => Promise<bigint> | bigint,
): Promise<SignedOrder> {
  if (order.challenge !== undefined) return signOffered(order, order.challenge, networks, readNow);
  const { scheme, x402Version, resource } = order;
  const named = networkOf(order, networks);
  const asset = tokenNamed(named, order.asset);
  const network = { ...named, asset };
  const method = transferMethodOf(scheme, order.method ?? usualMethod(asset));
  if (method === "permit2" && x402Version === 1) throw new KitError("Version 1 knows EIP-3009 alone");
  if (scheme === "exact" && order.max !== undefined) throw new KitError("Only scheme upto has a maximum");
  const max = order.max ?? order.amount ?? 10_000n;
  const amount = order.amount ?? max;
  const payTo = order.payTo ?? network.payTo;
  const payment = await sign(order, { network, max, payTo, method, now: await readNow(network.name) });
  const terms = { x402Version, network, asset, payTo, max, amount, resource, scheme };
  const { request: body, settleRequest: settleBody } = bodiesOf(payment, terms);
  const header = headerOf(x402Version, body.paymentPayload);
  return { body, settleBody, header, payer: payment.payer, network: network.name };
}

/** Signs what a shop offers, so that the payment passes the shop's comparison with its offer. */
async function signOffered(
  order: PaymentOrder,
  challenge: unknown,
  networks: readonly OrderNetwork[],
  readNow: (network: string) => Promise<bigint> | bigint,
): Promise<SignedOrder> {
  const offer = readOffer(readChallenge(challenge, "The shop"), networks, "The shop");
  const { x402Version, written, method, scheme, payTo, value: max, facilitator, maxTimeoutSeconds } = offer;
  const network = { ...offer.network, asset: { ...offer.network.asset, address: offer.asset } };
  const { validForSeconds = maxTimeoutSeconds } = order;
  const now = await readNow(network.name);
  const terms = { network, max, payTo, method, now, facilitator };
  const payment = await sign({ ...order, scheme, validForSeconds }, terms);
  const paymentPayload = payloadFor(offer, payment);
  const body = { x402Version, paymentPayload, paymentRequirements: written };
  const settled = { ...written, amount: `${order.amount ?? max}` };
  const isLess = scheme === "upto" && order.amount !== undefined;
  return {
    body,
    settleBody: isLess ? { ...body, paymentRequirements: settled } : body,
    header: headerOf(x402Version, paymentPayload),
    payer: payment.payer,
    network: network.name,
  };
}

function headerOf(x402Version: X402Version, paymentPayload: unknown): SignedOrder["header"] {
  const name = x402Version === 1 ? "X-PAYMENT" : "PAYMENT-SIGNATURE";
  return { name, value: encodeHeader(paymentPayload) };
}

function networkOf({ network }: PaymentOrder, networks: readonly OrderNetwork[]): OrderNetwork {
  const names = networks.map(({ name }) => name);
  const found = network === undefined ? networks[0] : networks.find(({ name }) => name === network);
  if (found !== undefined) return found;
  throw new KitError(
    `There is no network "${network}" here; did you mean ${nearest(network ?? "", names, 1)}? There is ${names.join(", ")}`,
  );
}

type Terms = {
  network: OrderNetwork;
  max: bigint;
  payTo: Address;
  method: TransferMethod;
  now: bigint;
  /** The only account that may submit a payment of scheme “upto”; the facilitator contract by default. */
  facilitator?: Address | undefined;
};

/** What is signed instead, where the payment is to be wrong. */
async function sign(
  { payer, scheme, broken, validForSeconds = 600 }: PaymentOrder,
  { network, max, payTo, method, now, facilitator = network.facilitatorContract }: Terms,
): Promise<SignedPayment> {
  const window = { expired: { until: -60 }, too_early: { from: 3_600, until: 7_200 } };
  const isOfTime = broken === "expired" || broken === "too_early";
  const signed = await signTerms(signerOf(payer, broken), {
    method,
    asset: network.asset,
    chainId: network.chainId + (broken === "other_chain" ? 1 : 0),
    to: broken === "other_recipient" ? somebodyElse : payTo,
    value: signedValue(max, broken),
    ...timesFrom(now, isOfTime ? window[broken] : { until: validForSeconds }),
    ...(scheme === "upto" && { facilitator }),
  });
  return broken === "no_signature" ? { ...signed, signature: "0x" } : signed;
}

function signedValue(max: bigint, broken: Breakage | undefined): bigint {
  const value = max + (broken === "too_much" ? 1n : broken === "too_little" ? -1n : 0n);
  if (value < 0n || value > maxUint256) throw new KitError(`A payment of ${max} cannot be ${broken}`);
  return value;
}

/** Neither a payer nor a payee of the kit. */
const somebodyElse: Address = "0x00000000000000000000000000000000DeaDBeef";

function signerOf(payer: string, broken: Breakage | undefined): KeySigner {
  const signer = signerNamed(payer);
  return broken === "wrong_signer" ? createPayerSigner(testPayers.empty.privateKey, signer.address) : signer;
}

/** The bodies of a verify and of a settle call, which differ where less than the maximum is settled. */
export type PaymentBodies = { request: WrittenRequest; settleRequest: WrittenRequest };

type BodyTerms = Omit<RequirementParts, "network" | "asset" | "amount" | "extra"> & {
  network: RequirementParts["network"] & { facilitatorContract: Address };
  asset: Asset;
  /** The most that may be taken, and what settle takes of it. */
  max: bigint;
  amount: bigint;
};

/** Writes a signed payment as a shop asks a facilitator about it. */
export function bodiesOf(
  payment: SignedPayment,
  { max, amount, ...terms }: BodyTerms,
  extensions?: object,
): PaymentBodies {
  const { write, extra } = methodOf(payment);
  const { network, asset } = terms;
  const parts = { ...terms, amount: max, extra: extra({ ...network, assets: [asset] }) ?? {} };
  const request = buildBody(parts, write(payment), extensions);
  const settled = { ...request.paymentRequirements, amount: `${amount}` };
  return { request, settleRequest: amount === max ? request : { ...request, paymentRequirements: settled } };
}
