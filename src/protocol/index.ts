export * from "./answers.ts";
export * from "./authorization.ts";
export * from "./build-request.ts";
export * from "./hex.ts";
export * from "./networks.ts";
export * from "./primitives.ts";
export * from "./reasons.ts";
export * from "./request-schemas.ts";
export {
  type Envelope,
  exactPayloadSchema,
  type ParsedRequest,
  type PaymentRequest,
  parsePaymentRequest,
  type X402Version,
} from "./requests.ts";
