import type { SignedPayment } from "../protocol/signed-payment.ts";
import { batchSettlementMethods } from "./batch-settlement/batch-settlement-methods.ts";
import type { TakenMethod } from "./method.ts";
import { methods } from "./methods.ts";

/** The payment methods that the service takes and `explain` reads: those of the table, and a scheme that web pages do not load. */
export const takenMethods: readonly [TakenMethod, ...TakenMethod[]] = [...methods, ...batchSettlementMethods];

export function takenMethodOf(payment: Pick<SignedPayment, "method">): TakenMethod {
  const method = takenMethods.find(({ name }) => name === payment.method);
  if (method === undefined) throw new Error(`unknown payment method: ${payment.method}`);
  return method;
}
