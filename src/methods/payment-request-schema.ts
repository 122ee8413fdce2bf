import { z } from "zod";
import { builtInNetworks } from "../protocol/networks.ts";
import { createPaymentRequestSchema, type PayloadSchemas } from "../protocol/request-schemas.ts";
import type { X402Version } from "../protocol/requests.ts";
import { scheme as batchSettlement } from "./batch-settlement/batch-settlement-methods.ts";
import { channelPayloadSchema } from "./batch-settlement/channel-schemas.ts";
import { methodsOf, schemes } from "./method-lists.ts";
import { halfOf } from "./people.ts";

/** `paymentPayload.payload` of a scheme. If a payload has the fields of several methods, the last method reads it. */
function payloadSchema(scheme: string, version: X402Version): z.ZodType {
  const able = methodsOf(scheme).filter(({ versions }) => versions.includes(version));
  const halves = [...new Set(able.map(halfOf))];
  const schemas = halves.map((half, index) => {
    const stronger = halves.slice(index + 1).map(({ member }) => [member, z.never().optional()]);
    const schema = half.payloadSchema(scheme);
    return stronger.length === 0 ? schema : schema.extend(Object.fromEntries(stronger));
  });
  const [only = z.never()] = schemas;
  return schemas.length > 1 ? z.union(schemas) : only;
}

/** `paymentPayload.payload` by x402 version and scheme. */
export const payloadSchemas: PayloadSchemas = {
  1: payloadSchema("exact", 1),
  2: {
    ...Object.fromEntries(schemes.map((scheme) => [scheme, payloadSchema(scheme, 2)])),
    [batchSettlement]: channelPayloadSchema,
  },
};

/** The schema of verify and settle bodies, with the built-in networks. */
export const paymentRequestSchema = createPaymentRequestSchema(builtInNetworks, payloadSchemas);
