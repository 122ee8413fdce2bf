import { createRequestParser } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { batchSettlementMethods } from "./batch-settlement/batch-settlement-methods.ts";
import type { TakenMethod } from "./method.ts";
import { methodAmong, methods } from "./methods.ts";

/** All payment methods that the service accepts and `explain` reads, including the scheme that web pages do not load. */
export const takenMethods: readonly [TakenMethod, ...TakenMethod[]] = [...methods, ...batchSettlementMethods];

export function takenMethodOf(payment: Pick<SignedPayment, "method">): TakenMethod {
  return methodAmong(takenMethods, payment);
}

/** Parses the JSON body of a verify or settle call for any of these methods. */
export const parseTakenRequest = createRequestParser(takenMethods);
