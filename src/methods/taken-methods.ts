import { createRequestParser } from "../protocol/requests.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { batchSettlementMethods } from "./batch-settlement/batch-settlement-methods.ts";
import type { TakenMethod } from "./method.ts";
import { methodAmong, methods } from "./methods.ts";

/** The payment methods that the service takes and `explain` reads: those of the table, and a scheme that web pages do not load. */
export const takenMethods: readonly [TakenMethod, ...TakenMethod[]] = [...methods, ...batchSettlementMethods];

export function takenMethodOf(payment: Pick<SignedPayment, "method">): TakenMethod {
  return methodAmong(takenMethods, payment);
}

/** Reads the JSON body of a verify or settle call that is paid in any of these ways. */
export const parseTakenRequest = createRequestParser(takenMethods);
