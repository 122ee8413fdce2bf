import { type Address, sameAddress } from "../protocol/hex.ts";
import { createRequestParser } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { exactEip3009Method } from "./exact-eip3009/eip3009-method.ts";
import type { Method } from "./method.ts";
import { methods, type Scheme, type TransferMethod } from "./table.ts";

export { methods, type Scheme, type TransferMethod };

/** From the default method on. */
const fromDefault = methods.toReversed();

/** The schemes of the payment methods, the default one first. */
export const schemes: readonly Scheme[] = [...new Set(fromDefault.map(({ scheme }) => scheme))];

/** How they move tokens, the default one first. */
export const transferMethods: readonly TransferMethod[] = [
  ...new Set(fromDefault.map(({ transfer }) => transfer)),
];

/**
 * The payment methods of a scheme, its default one first.
 *
 * @param transfer only those that move tokens so
 */
export function methodsOf(scheme: unknown, transfer?: string): Method<Scheme, TransferMethod>[] {
  return fromDefault.filter(
    (method) => method.scheme === scheme && (transfer === undefined || method.transfer === transfer),
  );
}

/** How a payment is paid. */
export function methodOf(payment: Pick<SignedPayment, "method">): Method {
  const method = methods.find(({ name }) => name === payment.method);
  if (method === undefined) throw new Error(`unknown payment method: ${payment.method}`);
  return method;
}

/**
 * A payment method whose payments have their nonces there, as all that do are judged alike by the state of a chain; undefined is the
 * token itself.
 */
export function methodByNonces(nonceSpace: Address | undefined): Method {
  const keepsThem = (method: Method) =>
    nonceSpace !== undefined && method.nonceSpace !== undefined && sameAddress(method.nonceSpace, nonceSpace);
  return methods.find(keepsThem) ?? exactEip3009Method;
}

/** Reads the JSON body of a verify or settle call: see {@link createRequestParser}. */
export const parsePaymentRequest = createRequestParser(methods);
