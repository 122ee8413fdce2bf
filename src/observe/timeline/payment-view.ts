import { z } from "zod";
import { callViewSchema } from "../../methods/call-view.ts";
import { methodViewSchema } from "../../methods/method-view.ts";

/**
 * Version 1 of `GET /payments`, `GET /payments/{id}` and `GET /events`. Amounts are decimal strings in the asset's
 * smallest unit, times are Unix milliseconds. Contains no signatures, keys or secrets.
 */
export const paymentApiVersion = 1;

/** The most payments in one response of `GET /payments`: as many as are kept. */
export const mostListed = 10_000;

const text = z.string().nullable();

/** An amount in the smallest unit. */
const amount = z.string().regex(/^\d+$/);

/** Unix seconds, within the range of a date. */
const chainTime = z
  .string()
  .regex(/^\d{1,12}$/)
  .nullable()
  .default(null);

/** Unix milliseconds, within the range of a date. */
const moment = z.number().min(0).max(8_640_000_000_000_000);

/** A token's decimals: an amount below 2^256 has at most 78 digits. */
export const decimalsSchema = z.int().min(0).max(77);

/** How far a verify or settle of a payment got. */
export const operationViewSchema = z.object({
  outcome: z.string().meta({
    description:
      "valid, invalid, settled, pending, refused (4xx), undetermined (5xx) or abandoned; open while the answer is not written",
  }),
  status: z.int().nullable(),
  reason: text,
  message: text,
  situation: text
    .default(null)
    .meta({ description: "What has happened, more exactly than the reason says: as in the answer" }),
  chainTime: chainTime.meta({
    description: "The chain's time that the payment's own was compared with, in unix seconds",
  }),
  tookMs: z.number().nullable(),
  count: z.int().meta({ description: "The number of requests" }),
  at: moment
    .nullable()
    .default(null)
    .meta({ description: "When this answer was written; null while there is none" }),
});

/** A request that matched no route. */
const unroutedViewSchema = z.object({
  method: z.string(),
  path: z.string().meta({ description: "Without its query" }),
  status: z.int().meta({ description: "404, or 405 where another method is needed" }),
  message: z.string(),
});

/** The outcome of a payment at the shop behind `up --shop`. */
const shopViewSchema = z.object({
  method: z.string(),
  path: z.string().meta({ description: "Without its query" }),
  outcome: z.enum(["open", "unpaid", "answered", "left", "down"]).meta({
    description:
      "open while there is no answer; unpaid: a 402 to a request without a payment; left: the client left first; down: the shop did not answer",
  }),
  status: z.int().nullable(),
  tookMs: z.number().nullable(),
  at: moment.meta({ description: "When it was answered, or else sent" }),
});

export type OperationView = z.infer<typeof operationViewSchema>;

export const tokenSchema = z.object({ symbol: z.string(), decimals: decimalsSchema });

/** A payment as one row of a list. */
export const paymentSummarySchema = z.object({
  id: z
    .string()
    .meta({ description: "The settlement id; request-ID of a request that is no readable payment" }),
  version: z.int().meta({
    description:
      "Grows with every change of any payment; the last one seen is in Last-Event-ID of GET /events",
  }),
  firstSeenAt: moment,
  lastSeenAt: moment,
  network: text,
  payer: text,
  payerName: text.meta({ description: "Of a published test payer" }),
  amount: amount.nullable(),
  asset: text,
  token: tokenSchema
    .nullable()
    .default(null)
    .meta({ description: "What amounts are counted in; null where the token is not known" }),
  x402Version: z.union([z.literal(1), z.literal(2)]).nullable(),
  verify: operationViewSchema.nullable(),
  settle: operationViewSchema.nullable(),
  unrouted: unroutedViewSchema
    .nullable()
    .default(null)
    .meta({ description: "Of a request that no route answers, which is neither verify nor settle" }),
  shop: shopViewSchema
    .nullable()
    .default(null)
    .meta({ description: "Its newest request to the shop; null where no `up --shop` has seen one" }),
  paidBy: text
    .default(null)
    .meta({ description: "Of a 402: the id of the payment that followed, which has it in its history" }),
  ledger: text.meta({
    description:
      "What the ledger says last: claimed, mined, settled, failed, recovered, …; null before it is claimed",
  }),
  settledAt: moment
    .nullable()
    .default(null)
    .meta({ description: "When it was settled, also where a later settle of the same payment was refused" }),
  withdrawal: z.object({ channel: z.string(), amount, endsAt: z.int() }).nullable().default(null).meta({
    description:
      "Of a channel (scheme batch-settlement): the payer has announced to take so much back, from unix seconds `endsAt` on",
  }),
  transaction: text,
  delivered: z.boolean().nullable().meta({ description: "Whether its success was written to the caller" }),
  faults: z
    .array(z.string())
    .default([])
    .meta({ description: "The kinds of the harness's faults that have hit it, each once" }),
  charge: amount.nullable().default(null).meta({
    description:
      "What settle takes of the amount, where that is a maximum (scheme “upto”); null before it is claimed, and where it failed",
  }),
});

export type PaymentSummary = z.infer<typeof paymentSummarySchema>;

/** One line in the history of a payment. */
export const timelineEntrySchema = z.object({
  at: moment,
  kind: z.enum([
    "request",
    "check",
    "answer",
    "ledger",
    "transaction",
    "rpc",
    "fault",
    "delivery",
    "shop",
    "withdrawal",
  ]),
  title: z.string().meta({ description: "What happened, in a few words" }),
  operation: text.default(null).meta({ description: "Of a verify or settle, and of its answer" }),
  outcome: text
    .default(null)
    .meta({ description: "Of an answer: as in `verify` and `settle` of the payment" }),
  ok: z.boolean().meta({ description: "False for what went wrong" }),
  requestId: text.meta({ description: "Which request it belongs to, where that is known" }),
  tookMs: z.number().nullable(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});

export type TimelineEntry = z.infer<typeof timelineEntrySchema>;

/** A problem with a payment and its fix; see `RefusalExplanation`. */
export const explanationSchema = z.object({
  mistake: z.string().meta({ description: "A mistake by its name, or else the reason of the refusal" }),
  situation: text.default(null).meta({ description: "Of the catalogue: what it causes or is" }),
  title: z.string(),
  at: z.string(),
  got: text,
  expected: text,
  why: z.string(),
  fix: z.string(),
  more: z.string().default("").meta({ description: "Where to read on: a section of docs/errors.md" }),
});

/** The body of a request that contained no readable payment. */
const receivedViewSchema = z.object({
  text: z.string().meta({
    description:
      "At most its first 4,096 characters, with each character of what may be a secret replaced by “•”",
  }),
  bytes: z.int().meta({ description: "Of all that came" }),
  isWhole: z.boolean().meta({ description: "Whether the text is all of the body" }),
  contentType: text,
  problem: z.object({ offset: z.int(), line: z.int(), column: z.int(), found: z.string() }).nullable().meta({
    description: "Where the text stops being JSON; null where it is JSON, or the place is behind it",
  }),
});

export type ReceivedView = z.infer<typeof receivedViewSchema>;

const answerViewSchema = z.object({
  operation: z.enum(["verify", "settle"]),
  status: z.int(),
  body: z.string().meta({ description: "As it was sent" }),
});

/** A request to the shop and its response, as far as x402 is concerned. */
const exchangeViewSchema = z.object({
  method: z.string(),
  url: z.url(),
  sentAt: moment,
  endedAt: moment.nullable(),
  header: text.meta({ description: "The name of its payment header; null without a payment" }),
  accepted: z.unknown().meta({ description: "The offer that the payment names; null where it names none" }),
  status: z.int().nullable(),
  challenges: z.array(z.unknown()).meta({ description: "Those of the answer, each as the shop wrote it" }),
  receipt: z.unknown().meta({ description: "The receipt in the answer; null without one" }),
  body: text.meta({ description: "The beginning of the body of an error other than a 402" }),
});

export type ExchangeView = z.infer<typeof exchangeViewSchema>;

/** Everything known about one payment. */
export const paymentDetailSchema = paymentSummarySchema.extend({
  method: text
    .default(null)
    .meta({ description: "How it is paid, such as exact-permit2; null of an unreadable request" }),
  way: methodViewSchema.nullable().default(null).meta({ description: "The same for forms and snippets" }),
  signed: z.record(z.string(), z.string()).nullable(),
  signedMembers: z
    .array(
      z.object({
        label: z.string(),
        value: z.string(),
        kind: z.enum(["recipient", "amount", "time", "other"]),
      }),
    )
    .readonly()
    .default([])
    .meta({ description: "What was signed, in order, and what each member of it is" }),
  required: z.record(z.string(), z.string()).nullable(),
  chainTime: chainTime.meta({
    description:
      "The chain's time, in unix seconds, when the newest settle, or else verify, was judged; null where that is not known",
  }),
  body: z.record(z.string(), z.unknown()).nullable().default(null).meta({
    description:
      "The bodies for verify and settle, in the full form of the version and without the signature",
  }),
  received: receivedViewSchema
    .nullable()
    .default(null)
    .meta({ description: "What came where no payment could be read" }),
  answers: z
    .array(answerViewSchema)
    .default([])
    .meta({ description: "The newest answer to a verify, and to a settle" }),
  exchanges: z
    .array(exchangeViewSchema)
    .default([])
    .meta({ description: "Its requests to the shop behind `up --shop`, and the 402 before them" }),
  timeline: z.array(timelineEntrySchema),
  omitted: z.int().meta({ description: "Lines before those of the timeline, which are too many to be kept" }),
  explanations: z.array(explanationSchema),
});

/** The most payments in a saved session. */
export const mostTold = 500;

export type PaymentDetail = z.infer<typeof paymentDetailSchema>;

/** The response of `GET /payments`, newest first. */
export const paymentListSchema = z.object({
  apiVersion: z.literal(paymentApiVersion),
  payments: z.array(paymentSummarySchema),
});

/** The response of `GET /payments/{id}`. */
export const paymentAnswerSchema = z.object({
  apiVersion: z.literal(paymentApiVersion),
  payment: paymentDetailSchema,
});

/** The response of `GET /payments/{id}/transaction`. Gas amounts are decimal strings; gas price and fee are in wei. */
export const transactionViewSchema = z.object({
  hash: z.string(),
  from: text,
  to: text,
  gasLimit: text,
  call: callViewSchema.nullable().meta({ description: "Null where it moves no payment" }),
  mined: z
    .object({
      succeeded: z.boolean(),
      blockNumber: z.string(),
      blockHash: z.string(),
      gasUsed: text,
      gasPrice: text,
      fee: text,
      events: z.array(
        z.object({
          name: z.string(),
          emitter: z.string().meta({ description: "The contract" }),
          logIndex: z.int(),
          fields: z.record(z.string(), z.string()),
        }),
      ),
    })
    .nullable(),
});

export type TransactionView = z.infer<typeof transactionViewSchema>;
