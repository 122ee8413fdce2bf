export * from "../protocol/answers.ts";
export * from "../protocol/catalogue.ts";
export * from "../protocol/hex.ts";
export * from "../protocol/networks.ts";
export { address, bytes32, signature, uint256String } from "../protocol/primitives.ts";
export * from "../protocol/request-schemas.ts";
export type {
  Envelope,
  ParsedRequest,
  PaymentRequest,
  X402Version,
} from "../protocol/requests.ts";
export * from "../protocol/settlement-query.ts";
export { type SignedPayment, settlementId } from "../protocol/signed-payment.ts";
export { maxSignatureBytes, maxUint256, parseUint256 } from "../protocol/wire-values.ts";
export { buildRequirements, type RequirementParts } from "./build-request.ts";
export { domainSeparator } from "./eip712.ts";
export * from "./exact-eip3009/authorization.ts";
export { buildPaymentRequest, type PaymentParts } from "./exact-eip3009/eip3009-method.ts";
export { exactPayloadSchema } from "./exact-eip3009/eip3009-schemas.ts";
export { parsePaymentRequest } from "./methods.ts";
export { paymentRequestSchema } from "./payment-request-schema.ts";
