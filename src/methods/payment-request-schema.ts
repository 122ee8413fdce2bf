import { builtInNetworks } from "../protocol/networks.ts";
import { createPaymentRequestSchema } from "../protocol/request-schemas.ts";
import { exactPayloadSchema } from "./exact-eip3009/payload-schema.ts";

/** `paymentPayload.payload` of the ways to pay. */
export const payloadSchema = exactPayloadSchema;

/** The body of verify and of settle as a schema, with the built-in networks. */
export const paymentRequestSchema = createPaymentRequestSchema(builtInNetworks, payloadSchema);
