import { z } from "zod";
import { transferMethods } from "../protocol/networks.ts";
import { address, strictMembers, uint256String } from "../protocol/primitives.ts";
import { localTokenNames } from "./local-chains.ts";

/** How a payment can be made wrong on request: what verify then says is in the name of the situation. */
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

/** What `POST /__payment` takes: a payment to be signed. Amounts are in the asset's smallest unit. */
export const orderSchema = strictMembers({
  payer: z.string().max(66).default("funded").describe("A test payer by its name, or a private key"),
  network: z.string().optional().describe("The first one by default"),
  asset: z.enum(localTokenNames).optional().describe("The token; USDC by default"),
  amount: uint256String.optional().describe("10000 by default; of scheme upto what settle is to take"),
  scheme: z.enum(["exact", "upto"]).default("exact"),
  method: z.enum(transferMethods).optional().describe("eip3009, and of scheme upto permit2, by default"),
  max: uint256String.optional().describe("Of scheme upto: the most that may be taken"),
  payTo: address.optional(),
  x402Version: z.union([z.literal(1), z.literal(2)]).default(2),
  validForSeconds: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000_000)
    .optional()
    .describe("600 by default, or what the challenge allows"),
  challenge: z
    .union([z.string().max(100_000), z.looseObject({})])
    .optional()
    .describe(
      "A shop's 402, to be paid as it offers: its body, or the text of its PAYMENT-REQUIRED header. It replaces all members but payer, broken, validForSeconds and amount",
    ),
  resource: z.string().max(2_000).default("https://merchant.example/resource"),
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

/** What `POST /__payment` answers. */
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

/** `POST /__payment`, for OpenAPI. */
export const orderRoute = {
  id: "signPayment",
  summary: "Signs a payment, which is not sent anywhere",
  body: orderSchema,
  answer: "The payment, as it travels",
  answerSchema: signedOrderSchema,
};
