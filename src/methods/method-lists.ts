import type { SignedPayment } from "../protocol/signed-payment.ts";
import { payableDeposits } from "./batch-settlement/payable-deposits.ts";
import type { Method, PayableMethod } from "./method.ts";
import { methodAmong } from "./methods.ts";
import { methods, type Scheme as SchemeOfPages, type TransferMethod } from "./table.ts";

/*
 * The payment methods by scheme, by how tokens move, and by what people call them. Apart from the methods, since a page needs it
 * only to sign.
 */

/** From the default method on. */
const fromDefault = methods.toReversed();

/** A scheme that payers know. */
export type Scheme = SchemeOfPages | (typeof payableDeposits)[number]["scheme"];

/** All that payers sign, the default one first. */
const payable: readonly PayableMethod<Scheme, TransferMethod>[] = [...fromDefault, ...payableDeposits];

/** Returns true if purchases by a scheme come from channels, which buyers keep. */
export const keepsChannels = (scheme: string) => payableDeposits.some((one) => one.scheme === scheme);

/** The schemes of the payment methods, the default one first. */
export const schemes: readonly Scheme[] = [...new Set(payable.map(({ scheme }) => scheme))];

/** How they move tokens, the default one first. */
export const transferMethods: readonly TransferMethod[] = [
  ...new Set(fromDefault.map(({ transfer }) => transfer)),
];

/**
 * The payment methods of a scheme, its default one first.
 *
 * @param transfer only those that move tokens so
 */
export function methodsOf(scheme: unknown, transfer?: string): PayableMethod<Scheme, TransferMethod>[] {
  return payable.filter(
    (method) => method.scheme === scheme && (transfer === undefined || method.transfer === transfer),
  );
}

/** The scheme that is meant where a maximum is named, and no scheme. */
export const maximumScheme = fromDefault.find(({ takesLess }) => takesLess)?.scheme;

/** The method of a payment that was signed here. */
export function payableMethodOf(payment: Pick<SignedPayment, "method">): PayableMethod {
  return methodAmong(payable, payment);
}

/** The name of a payment method in options and reports: its scheme, or for the default scheme how tokens move. */
export function shortNameOf({ scheme, transfer }: Pick<Method, "scheme" | "transfer">): string {
  return scheme === schemes[0] ? transfer : scheme;
}

/** The short names of all, the default method first. */
export const shortNames: readonly string[] = [...new Set(fromDefault.map(shortNameOf))];

/** The short names of all that payers sign. */
export const payableNames: readonly string[] = [...new Set(payable.map(shortNameOf))];

/** The payers' half of the payment method with a short name. */
export function payableNamed(name: string): PayableMethod<Scheme, TransferMethod> {
  const method = payable.find((one) => shortNameOf(one) === name);
  if (method === undefined) throw new Error(`unknown payment method: ${name}`);
  return method;
}

/** The payment method with a short name; the default one of its scheme where several have it. */
export function methodNamed(name: string): Method {
  const method = fromDefault.find((one) => shortNameOf(one) === name);
  if (method === undefined) throw new Error(`unknown payment method: ${name}`);
  return method;
}
