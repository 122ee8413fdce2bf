import { z } from "zod";
import { schemes, transferMethods } from "../methods/method-lists.ts";
import { address, strictMembers } from "../protocol/primitives.ts";
import { localTokenNames } from "./local-chains.ts";
import { amountForm, type PaymentTerms, paymentTerms, readAmount, smallestUnit, usual } from "./terms.ts";

/** The ways in which a payment can be made wrong on request. */
const breakages = {
  wrong_signer: "signed by another key than the payer's",
  no_signature: "without a signature",
  other_chain: "signed for another chain",
  other_recipient: "signed to somebody else than payTo",
  too_little: "signed for one unit less than is asked for",
  too_much: "signed for one unit more than is asked for",
  expired: "expired a minute ago",
  too_early: "valid in an hour",
} as const satisfies Readonly<Record<string, string>>;

export type Breakage = keyof typeof breakages;

const amount = z.string().regex(amountForm, "is no amount in whole tokens, such as 0.01").optional();
const help = (name: keyof PaymentTerms) => paymentTerms[name].help;

/** The fields of a payment's terms in JSON. */
export const termMembers = {
  payer: z.string().max(66).default(usual.payer).describe(help("payer")),
  network: z.string().optional().describe(help("network")),
  asset: z.enum(localTokenNames).optional().describe(help("asset")),
  amount: amount.describe(help("amount")),
  max: amount.describe(help("max")),
  units: z
    .boolean()
    .default(false)
    .describe("true: amounts count the token's smallest unit (10000 is 0.01 USDC)"),
  scheme: z.enum(schemes).default(usual.scheme).describe(help("scheme")),
  method: z.enum(transferMethods).optional().describe(help("method")),
  payTo: address.optional().describe(help("payTo")),
  x402Version: z
    .union([z.literal(1), z.literal(2)])
    .default(usual.x402Version)
    .describe(help("x402Version")),
  validForSeconds: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000_000)
    .optional()
    .describe(help("validForSeconds")),
  resource: z.string().max(2_000).default(usual.resource).describe(help("resource")),
};

/**
 * Reads an amount from JSON.
 *
 * @returns a bigint if it counts the smallest unit
 */
export function jsonAmount<Text extends string | undefined>(text: Text, units: boolean): Text | bigint {
  return units && text !== undefined ? readAmount(text, smallestUnit) : text;
}

/** The body of `POST /__payment`: a payment to sign. */
export const orderSchema = strictMembers({
  ...termMembers,
  challenge: z
    .union([z.string().max(100_000), z.looseObject({})])
    .optional()
    .describe(
      "A shop's 402, to be paid as it offers: its body, or the text of its PAYMENT-REQUIRED header. It replaces all members but payer, broken, validForSeconds and amount",
    ),
  broken: z
    .enum(Object.keys(breakages) as [Breakage, ...Breakage[]])
    .optional()
    .describe(
      `How it is wrong: ${Object.entries(breakages)
        .map(([name, means]) => `${name}, ${means}`)
        .join("; ")}`,
    ),
});

export type PaymentOrder = z.infer<typeof orderSchema>;

const signedOrderSchema = {
  type: "object",
  required: ["body", "settleBody", "header", "payer", "network"],
  properties: {
    body: { type: "object", description: "The body of a verify" },
    settleBody: { type: "object", description: "That of a settle" },
    header: {
      type: "object",
      description: "The header that buys at a shop",
      required: ["name", "value"],
      properties: { name: { type: "string" }, value: { type: "string" } },
    },
    payer: { type: "string" },
    network: { type: "string" },
  },
} as const;

export const orderRoute = {
  id: "signPayment",
  summary: "Signs a payment, which is not sent anywhere",
  body: orderSchema,
  answer: "The payment, as it travels",
  answerSchema: signedOrderSchema,
};
