export * from "./answers.ts";
export * from "./authorization.ts";
export * from "./build-request.ts";
export * from "./catalogue.ts";
export * from "./hex.ts";
export * from "./networks.ts";
export * from "./primitives.ts";
export * from "./request-schemas.ts";
export {
  type Envelope,
  type ParsedRequest,
  type PaymentRequest,
  parsePaymentRequest,
  type X402Version,
} from "./requests.ts";
export * from "./settlement-states.ts";
export { maxSignatureBytes, maxUint256, parseUint256 } from "./wire-values.ts";
