import { z } from "zod";
import { builderCodeExtension } from "./builder-code.ts";
import { sameAddress } from "./hex.ts";
import type { NetworkRegistry } from "./networks.ts";
import { paymentIdentifierExtension } from "./payment-identifier.ts";
import { address, uint256String } from "./primitives.ts";
import { faults } from "./wire-values.ts";

/*
 * Whole requests as schemas, as OpenAPI shows them. `createRequestParser` reads the same requests part by part,
 * because each faulty part has its own reason; a test ensures that both accept and refuse the same bodies.
 */

const text = z.string(faults.text);
const seconds = z.int(faults.seconds).nonnegative(faults.negative);

/** Members of the requirements that are validated but not used. */
const requirementDetails = {
  resource: text.nullish(),
  description: text.nullish(),
  mimeType: text.nullish(),
  maxTimeoutSeconds: seconds.optional(),
};

/** `paymentPayload.payload` for each version and scheme. */
export type PayloadSchemas = {
  readonly 1: z.ZodType;
  readonly 2: Readonly<Record<string, z.ZodType>>;
};

/** Any value: it does not affect the decision. */
const anything = z.unknown().optional();

/** The body of verify and settle, in either version. Unknown keys are ignored everywhere. */
export function createPaymentRequestSchema(known: NetworkRegistry, payloads: PayloadSchemas) {
  const networkV1 = z.enum(known.names).meta({ example: "base" });
  const networkV2 = z.enum(known.all.map(({ caip2 }) => caip2)).meta({ example: "eip155:8453" });

  /** `paymentPayload` in protocol version 1. */
  const paymentPayloadV1 = z.object({
    x402Version: z.literal(1),
    scheme: z.literal("exact"),
    network: networkV1,
    payload: payloads[1],
  });

  const requirementsV1 = { network: networkV1, asset: address, ...requirementDetails };

  /** `paymentRequirements` in protocol version 1: the full form, or the short one. If both are present, they must agree. */
  const paymentRequirementsV1 = z
    .union([
      z
        .object({
          ...requirementsV1,
          scheme: z.literal("exact"),
          maxAmountRequired: uint256String,
          payTo: address,
          amount: uint256String.optional(),
          recipient: address.optional(),
        })
        .meta({ description: "The full form" }),
      z
        .object({
          ...requirementsV1,
          scheme: z.literal("exact").optional(),
          amount: uint256String,
          recipient: address.optional(),
          maxAmountRequired: uint256String.optional(),
          payTo: address.optional(),
        })
        .meta({ description: "The short form; recipient, where given, is read as payTo" }),
    ])
    .refine(
      ({ amount, maxAmountRequired, payTo, recipient }) =>
        (amount === undefined || maxAmountRequired === undefined || amount === maxAmountRequired) &&
        (payTo === undefined || recipient === undefined || sameAddress(payTo, recipient)),
      "the two forms must agree",
    );

  const oneNetwork = "the payment and the requirements must name the same network";

  /** A request of protocol version 2; both halves have the same scheme. */
  const requestV2 = (scheme: string, payload: z.ZodType) =>
    z
      .object({
        paymentPayload: z.object({
          x402Version: z.literal(2),
          accepted: z.object({ scheme: z.literal(scheme), network: networkV2 }),
          payload,
          resource: anything.meta({
            description: "What is paid for: an object with url",
            example: { url: "https://…" },
          }),
          extensions: anything.meta({
            description: `By name; ${paymentIdentifierExtension} is understood: info.id names the payment, 16 to 128 letters, digits, hyphens and underscores. The codes of ${builderCodeExtension} are appended to the calldata that settles it`,
          }),
        }),
        paymentRequirements: z.object({
          scheme: z.literal(scheme),
          network: networkV2,
          amount: uint256String,
          asset: address,
          payTo: address,
          maxTimeoutSeconds: requirementDetails.maxTimeoutSeconds,
        }),
      })
      .refine(
        ({ paymentPayload, paymentRequirements }) =>
          paymentPayload.accepted.network === paymentRequirements.network,
        oneNetwork,
      );

  return z.union([
    z
      .object({ paymentPayload: paymentPayloadV1, paymentRequirements: paymentRequirementsV1 })
      .refine(
        ({ paymentPayload, paymentRequirements }) => paymentPayload.network === paymentRequirements.network,
        oneNetwork,
      ),
    ...Object.entries(payloads[2]).map(([scheme, payload]) => requestV2(scheme, payload)),
  ]);
}
