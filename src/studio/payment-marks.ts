import type { PaymentRequest } from "../protocol/requests.ts";

/** This many digits of a signature tell it from others; a shorter one, which is malformed, does not. */
const markLength = 64;

/**
 * Hexadecimal digits by which a JSON-RPC call is known to be about a payment: an authorization nonce is 32 random bytes and
 * stands in every simulation and every transaction of its payment, and the signature in what wallets are asked.
 */
function marksOf({ authorization, signature }: PaymentRequest): readonly string[] {
  return [authorization.nonce.slice(2), signature.slice(2, 2 + markLength)].map((mark) => mark.toLowerCase());
}

const known = new WeakMap<object, readonly string[]>();

/** The same of a payment that is kept, without any where it is not readable. They are known after the first look. */
export function marksOfPayment(payment: { readonly request: PaymentRequest | undefined }): readonly string[] {
  const marks = known.get(payment);
  if (marks !== undefined) return marks;
  const { request } = payment;
  const read = request === undefined ? [] : marksOf(request);
  known.set(payment, read);
  return read;
}

/** Whether the parameters of a call, as JSON in lower case, have one of these marks. */
export function isAbout(marks: readonly string[], text: string): boolean {
  return marks.some((mark) => mark.length === markLength && text.includes(mark));
}
