import { z } from "zod";
import { nonceMember } from "../../methods/nonce-member.ts";
import { explanationSchema, tokenSchema } from "../../observe/studio/payment-view.ts";

/** A check of a request, as it was made. `at`: milliseconds since the epoch. */
const journalCheck = z.object({
  at: z.number(),
  check: z.string(),
  passed: z.boolean(),
});

/** A verify or settle. Times in milliseconds; `status` is null when the caller left before the answer. */
const journalRequest = z.object({
  operation: z.enum(["verify", "settle"]),
  requestId: z.string(),
  at: z.number(),
  tookMs: z.number(),
  status: z.int().nullable(),
  outcome: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
  transaction: z.string().optional(),
  checks: z.array(journalCheck),
});

/**
 * A JSON-RPC call of the service for the payment, with the node's answer, if any, and the faults that hit it. The
 * calls of one batch have the same times.
 */
const journalRpcCall = z.object({
  at: z.number(),
  tookMs: z.number(),
  method: z.string(),
  params: z.array(z.unknown()),
  /** A result or an error; neither if the node was not asked or did not answer. */
  answer: z.object({ result: z.unknown().optional(), error: z.unknown().optional() }),
  faults: z.array(z.string()),
});

/** A transaction that carried the payment; `mined` once the service has read a receipt of it. */
const journalTransaction = z.object({
  hash: z.string(),
  txNonce: z.int(),
  sentAt: z.number(),
  /** How many payments it carried. */
  payments: z.int(),
  mined: z.object({ at: z.number(), blockNumber: z.string(), succeeded: z.boolean() }).optional(),
});

/** A verify or settle without an answer so far, with the checks that it has passed. */
const openRequest = journalRequest.pick({ operation: true, requestId: true, at: true, checks: true });

/** A request without a readable payment: with an unknown route, a wrong API key, or another body. */
export const otherRequestSchema = z.object({
  /** Milliseconds since the epoch. */
  at: z.number(),
  requestId: z.string(),
  /** `POST /v1/verify`. */
  asked: z.string(),
  /** Null when the caller left before the answer. */
  status: z.int().nullable(),
  reason: z.string().optional(),
  message: z.string().optional(),
  /** The beginning of its body, with what may be a secret masked. */
  received: z.string().optional(),
});

export type OtherRequest = z.infer<typeof otherRequestSchema>;

/** Everything the service did for one payment. Amounts are decimal, in the asset's smallest unit. */
export const paymentJournalSchema = z.object({
  id: z.string(),
  network: z.string(),
  payer: z.string(),
  asset: z.string(),
  value: z.string(),
  /** What amounts are counted in; null where the token is not known. */
  token: tokenSchema.nullable().default(null),
  [nonceMember]: z.string(),
  requests: z.array(journalRequest),
  open: z.array(openRequest).default([]),
  rpcCalls: z.array(journalRpcCall),
  transactions: z.array(journalTransaction),
  /** Why the newest refusal was one, and what to do: as the studio and `x402-kit why` have it. */
  explanations: z.array(explanationSchema).default([]),
});

export type PaymentJournal = z.infer<typeof paymentJournalSchema>;
export type JournalRequest = PaymentJournal["requests"][number];
export type OpenRequest = PaymentJournal["open"][number];
export type JournalRpcCall = PaymentJournal["rpcCalls"][number];
export type JournalTransaction = PaymentJournal["transactions"][number];
