import { type Address, sameAddress } from "../protocol/hex.ts";
import { createRequestParser } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { exactEip3009Method } from "./exact-eip3009/eip3009-method.ts";
import type { Method } from "./method.ts";
import { methods, type TransferMethod } from "./table.ts";

export { methods, type TransferMethod };

export function methodOf(payment: Pick<SignedPayment, "method">): Method {
  return methodAmong(methods, payment);
}

const lateScheme = "batch-settlement";
const lateNames = new RegExp(`"(${lateScheme}|channelConfig)"`);

/** Returns true if a JSON body may use the scheme that web pages load lazily: then parse it with `taken-methods.ts`. */
export function namesLateScheme(json: string): boolean {
  return lateNames.test(json);
}

/**
 * Finds the method of a payment.
 *
 * @throws Error if the method is not in the list
 */
export function methodAmong<M extends Pick<Method, "name">>(
  among: readonly M[],
  payment: Pick<SignedPayment, "method">,
): M {
  const method = among.find(({ name }) => name === payment.method);
  if (method === undefined) throw new Error(`unknown payment method: ${payment.method}`);
  return method;
}

/**
 * A payment method that keeps its nonces in this contract; undefined means the token. Any of them will do: the chain's
 * state means the same for all methods that share a nonce space.
 */
export function methodByNonces(nonceSpace: Address | undefined): Method {
  const keepsThem = (method: Method) =>
    nonceSpace !== undefined && method.nonceSpace !== undefined && sameAddress(method.nonceSpace, nonceSpace);
  return methods.find(keepsThem) ?? exactEip3009Method;
}

/** Reads the JSON body of a verify or settle call: see {@link createRequestParser}. */
export const parsePaymentRequest = createRequestParser(methods, [lateScheme]);
