import { payableMethodOf } from "../methods/method-lists.ts";
import type { PayerTerms } from "../methods/payer-terms.ts";
import { timesFrom } from "../methods/payment-times.ts";
import type { Address } from "../protocol/hex.ts";
import { maxUint256 } from "../protocol/wire-values.ts";
import { KitError } from "../util/errors.ts";
import { type Breakage, jsonAmount, type PaymentOrder } from "./payment-order.ts";
import { readOffer } from "./read-offer.ts";
import { createPayerSigner, signerNamed } from "./sign-as.ts";
import { agree, bodiesOf, headerOf, type Offer, type PayingNetwork, signOffer } from "./sign-payment.ts";
import { toUnits } from "./terms.ts";
import { testPayers } from "./test-payers.ts";

/** A signed payment, ready to send. */
export type SignedOrder = {
  body: object;
  /** The body of a settle call. It takes less than the maximum if an order for scheme "upto" says so. */
  settleBody: object;
  header: { name: string; value: string };
  payer: Address;
  network: string;
};

/**
 * Signs a payment for a test that cannot sign itself, such as one in another language.
 *
 * @param networks the running networks
 * @param readNow reads the time of a network's chain, in unix seconds
 * @throws {KitError} if there is no such payer or network, or the fields are incompatible
 */
export async function signOrder(
  order: PaymentOrder,
  networks: readonly PayingNetwork[],
  readNow: (network: string) => Promise<bigint> | bigint,
): Promise<SignedOrder> {
  const { payer: name, broken, units } = order;
  const offer = offerOf(order, networks);
  const signer = signerNamed(name);
  const now = await readNow(offer.network.name);
  const payment = await signOffer(
    broken === "wrong_signer" ? createPayerSigner(testPayers.empty.privateKey, signer.address) : signer,
    offer,
    now,
    changesFor(broken, offer, now),
  );
  const sent = broken === "no_signature" ? { ...payment, signature: "0x" as const } : payment;
  const amount = jsonAmount(order.amount, units);
  const isLess = amount !== undefined && payableMethodOf(payment).takesLess;
  const { request: body, settleRequest: settleBody } = bodiesOf(offer, sent, {
    amount: isLess ? toUnits(amount, offer.asset) : undefined,
  });
  const header = headerOf(offer.x402Version, body.paymentPayload);
  return { body, settleBody, header, payer: payment.payer, network: offer.network.name };
}

/** The shop's own offer, so that the payment passes the shop's comparison with it; or an offer with the ordered terms. */
function offerOf(order: PaymentOrder, networks: readonly PayingNetwork[]): Offer<PayingNetwork> {
  const { challenge, units, amount, max, validForSeconds } = order;
  if (challenge === undefined) {
    return agree({ ...order, amount: jsonAmount(amount, units), max: jsonAmount(max, units) }, networks);
  }
  const offer = readOffer(challenge, networks, "The shop");
  return { ...offer, validForSeconds: validForSeconds ?? offer.validForSeconds };
}

/** An address that is neither a payer nor a payee of the kit. */
const somebodyElse: Address = "0x00000000000000000000000000000000DeaDBeef";

/** The terms to sign instead of the offer's, if the payment is to be wrong. */
function changesFor(
  broken: Breakage | undefined,
  { value, network }: Offer,
  now: bigint,
): Partial<PayerTerms> {
  switch (broken) {
    case "other_chain":
      return { chainId: network.chainId + 1 };
    case "other_recipient":
      return { to: somebodyElse };
    case "expired":
      return timesFrom(now, { until: -60 });
    case "too_early":
      return timesFrom(now, { from: 3_600, until: 7_200 });
    case "too_little":
    case "too_much": {
      const wrong = value + (broken === "too_much" ? 1n : -1n);
      if (wrong >= 0n && wrong <= maxUint256) return { value: wrong };
      throw new KitError(`A payment of ${value} cannot be ${broken}`);
    }
    default:
      return {};
  }
}
