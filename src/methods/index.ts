export * from "../protocol/index.ts";
export * from "./exact-eip3009/authorization.ts";
export {
  authorizationJson,
  buildPaymentRequest,
  buildRequirements,
  type PaymentParts,
  type RequirementParts,
} from "./exact-eip3009/eip3009-payload.ts";
export { exactPayloadSchema } from "./exact-eip3009/eip3009-schemas.ts";
export { parsePaymentRequest } from "./methods.ts";
export { paymentRequestSchema } from "./payment-request-schema.ts";
