import type { PaymentRequest } from "../../protocol/requests.ts";

/** This many digits of a signature tell it from others; a shorter one, which is malformed, does not. */
const markLength = 64;

/** To read the request of a payment again takes some time, and all are looked through for each call. */
const known = new WeakMap<object, readonly string[]>();

/**
 * Hexadecimal digits by which a JSON-RPC call is known to be about a payment: an authorization nonce is 32 random bytes and
 * stands in every simulation and every transaction of its payment, and the signature in what wallets are asked. None of one
 * that is not readable.
 */
export function marksOf(payment: { readonly request: PaymentRequest | undefined }): readonly string[] {
  const marks = known.get(payment) ?? readMarks(payment.request);
  known.set(payment, marks);
  return marks;
}

function readMarks(request: PaymentRequest | undefined): readonly string[] {
  if (request === undefined) return [];
  const { nonce, signature } = request.payment;
  return [nonce.slice(2), signature.slice(2, 2 + markLength)].map((mark) => mark.toLowerCase());
}

/** Whether the parameters of a call, as JSON in lower case, have one of these marks. */
export function isAbout(marks: readonly string[], text: string): boolean {
  return marks.some((mark) => mark.length === markLength && text.includes(mark));
}
