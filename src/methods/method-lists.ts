import type { SignedPayment } from "../protocol/signed-payment.ts";
import { payableDeposits } from "./batch-settlement/payable-deposits.ts";
import type { Method, PayableMethod } from "./method.ts";
import { methodAmong } from "./methods.ts";
import { methods, type Scheme as SchemeOfPages, type TransferMethod } from "./table.ts";

/*
 * The payment methods by scheme, by transfer method, and by short name. In its own file because web pages need it only
 * for signing.
 */

/** The default method first. */
const fromDefault = methods.toReversed();

/** A scheme that payers know. */
export type Scheme = SchemeOfPages | (typeof payableDeposits)[number]["scheme"];

/** All methods that payers can sign for, the default one first. */
const payable: readonly PayableMethod<Scheme, TransferMethod>[] = [...fromDefault, ...payableDeposits];

/** Returns true if purchases in this scheme are paid from channels, whose state the buyer must keep. */
export const keepsChannels = (scheme: string) => payableDeposits.some((one) => one.scheme === scheme);

/** The schemes that payers can sign for, the default one first. */
export const schemes: readonly Scheme[] = [...new Set(payable.map(({ scheme }) => scheme))];

/** The transfer methods, the default one first. */
export const transferMethods: readonly TransferMethod[] = [
  ...new Set(fromDefault.map(({ transfer }) => transfer)),
];

/**
 * The payment methods of a scheme, its default one first.
 *
 * @param transfer returns only those with this transfer method
 */
export function methodsOf(scheme: unknown, transfer?: string): PayableMethod<Scheme, TransferMethod>[] {
  return payable.filter(
    (method) => method.scheme === scheme && (transfer === undefined || method.transfer === transfer),
  );
}

/** The scheme to use if a maximum is given but no scheme. */
export const maximumScheme = fromDefault.find(({ takesLess }) => takesLess)?.scheme;

/** Finds the method that a payment was signed with. */
export function payableMethodOf(payment: Pick<SignedPayment, "method">): PayableMethod {
  return methodAmong(payable, payment);
}

/** The short name of a payment method in options and reports: its scheme, or its transfer method for the default scheme. */
export function shortNameOf({ scheme, transfer }: Pick<Method, "scheme" | "transfer">): string {
  return scheme === schemes[0] ? transfer : scheme;
}

/** The short names of all methods, the default one first. */
export const shortNames: readonly string[] = [...new Set(fromDefault.map(shortNameOf))];

/** The short names of all methods that payers can sign for. */
export const payableNames: readonly string[] = [...new Set(payable.map(shortNameOf))];

/** Finds the payers' part of a payment method by its short name. Throws if there is none. */
export function payableNamed(name: string): PayableMethod<Scheme, TransferMethod> {
  const method = payable.find((one) => shortNameOf(one) === name);
  if (method === undefined) throw new Error(`unknown payment method: ${name}`);
  return method;
}

/** Finds a payment method by its short name; if several share it, the default one of the scheme. Throws if there is none. */
export function methodNamed(name: string): Method {
  const method = fromDefault.find((one) => shortNameOf(one) === name);
  if (method === undefined) throw new Error(`unknown payment method: ${name}`);
  return method;
}
