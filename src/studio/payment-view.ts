/**
 * What `GET /payments`, `GET /payments/{id}` and `GET /events` say of payments: version 1 of that API. Amounts are
 * decimal strings in the asset's smallest unit, times unix milliseconds. There is no signature, key or secret in it.
 */
export const paymentApiVersion = 1;

/** How far a verify or settle of a payment came; `none` where there was no such request. */
export type OperationView = {
  /** One of `PaymentOutcome`, or `open` while the answer is not written. */
  outcome: string;
  status: number | null;
  reason: string | null;
  message: string | null;
  tookMs: number | null;
  /** How often it was asked. */
  count: number;
};

/** A payment as one row of a list. */
export type PaymentSummary = {
  /** The settlement id; `request-ID` of a request that is no readable payment. */
  id: string;
  /** Grows with every change of any payment: `Last-Event-ID` of `GET /events` is the last one seen. */
  version: number;
  firstSeenAt: number;
  lastSeenAt: number;
  network: string | null;
  payer: string | null;
  /** Of a published test payer. */
  payerName: string | null;
  amount: string | null;
  asset: string | null;
  x402Version: 1 | 2 | null;
  verify: OperationView | null;
  settle: OperationView | null;
  /** What the ledger says last: claimed, mined, settled, failed, recovered, …; null before it is claimed. */
  ledger: string | null;
  transaction: string | null;
  /** Whether its success was written to the caller. */
  delivered: boolean | null;
};

/** One line of a payment's story. */
export type TimelineEntry = {
  at: number;
  kind: "request" | "check" | "answer" | "ledger" | "transaction" | "rpc" | "fault" | "delivery";
  /** What happened, in a few words. */
  title: string;
  /** False for what went wrong. */
  ok: boolean;
  /** Which request it belongs to, where that is known. */
  requestId: string | null;
  tookMs: number | null;
  /** Facts by their names. */
  details: Record<string, string | number | boolean>;
};

/** Something that is wrong with the payment, and how it is mended; see docs/errors.md. */
export type ExplanationView = {
  mistake: string;
  title: string;
  at: string;
  got: string | null;
  expected: string | null;
  why: string;
  fix: string;
};

/** All that is known of one payment. */
export type PaymentDetail = PaymentSummary & {
  signed: Record<string, string> | null;
  required: Record<string, string> | null;
  timeline: TimelineEntry[];
  /** Lines that were left out of the timeline because there were too many. */
  omitted: number;
  explanations: ExplanationView[];
};
