export * from "./answers.ts";
export * from "./catalogue.ts";
export * from "./hex.ts";
export * from "./networks.ts";
export * from "./primitives.ts";
export * from "./request-schemas.ts";
export type {
  Envelope,
  ParsedRequest,
  PaymentRequest,
  X402Version,
} from "./requests.ts";
export * from "./settlement-query.ts";
export { type SignedPayment, settlementId } from "./signed-payment.ts";
export { maxSignatureBytes, maxUint256, parseUint256 } from "./wire-values.ts";
