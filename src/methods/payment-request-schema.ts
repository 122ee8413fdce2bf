import { z } from "zod";
import { builtInNetworks } from "../protocol/networks.ts";
import { createPaymentRequestSchema, type PayloadSchemas } from "../protocol/request-schemas.ts";
import { exactPayloadSchema } from "./exact-eip3009/eip3009-schemas.ts";
import { permitMember } from "./permit2/permit2-payload.ts";
import { createPermitPayloadSchema } from "./permit2/permit2-schemas.ts";

/** In version 2 a payload is of Permit2 as soon as it has that member. */
const authorization = exactPayloadSchema.extend({ [permitMember]: z.never().optional() });

/** `paymentPayload.payload` of the payment methods. */
export const payloadSchemas: PayloadSchemas = {
  1: exactPayloadSchema,
  2: {
    exact: z.union([authorization, createPermitPayloadSchema({ hasFacilitator: false })]),
    upto: createPermitPayloadSchema({ hasFacilitator: true }),
  },
};

/** The body of verify and of settle as a schema, with the built-in networks. */
export const paymentRequestSchema = createPaymentRequestSchema(builtInNetworks, payloadSchemas);
