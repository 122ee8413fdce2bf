import { z } from "zod";
import { nonceMember } from "../../methods/method.ts";
import { explanationSchema, type PaymentSummary, tokenSchema } from "../../observe/timeline/payment-view.ts";
import { isAbout, type PaymentRecord } from "../../observe/timeline/record.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { type KnownTokens, unitsOfPayment } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import type { ProxiedExchange } from "../faults/create-faults.ts";

/** A check made for a request. `at` is in milliseconds since the epoch. */
const journalCheck = z.object({
  at: z.number(),
  check: z.string(),
  passed: z.boolean(),
});

/** A verify or settle. Times are in milliseconds; `status` is null if the caller disconnected before the answer. */
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
 * A JSON-RPC call of the service for the payment, with the node's answer, if any, and the faults that hit it. All calls
 * of a batch have the same times.
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

/** A transaction that carried the payment. `mined` is set once the service has read its receipt. */
const journalTransaction = z.object({
  hash: z.string(),
  txNonce: z.int(),
  sentAt: z.number(),
  /** The number of payments in it. */
  payments: z.int(),
  mined: z.object({ at: z.number(), blockNumber: z.string(), succeeded: z.boolean() }).optional(),
});

/** A verify or settle that is not answered yet, with the checks made so far. */
const openRequest = journalRequest.pick({ operation: true, requestId: true, at: true, checks: true });

/** A request without a readable payment: unknown route, wrong API key, or unreadable body. */
export const otherRequestSchema = z.object({
  /** Milliseconds since the epoch. */
  at: z.number(),
  requestId: z.string(),
  /** Method and path, such as `POST /v1/verify`. */
  asked: z.string(),
  /** Null if the caller disconnected before the answer. */
  status: z.int().nullable(),
  reason: z.string().optional(),
  message: z.string().optional(),
  /** The beginning of its body, with possible secrets masked. */
  received: z.string().optional(),
});

export type OtherRequest = z.infer<typeof otherRequestSchema>;

/** Everything the service did for one payment. Amounts are decimal strings in the asset's smallest unit. */
export const paymentJournalSchema = z.object({
  id: z.string(),
  network: z.string(),
  payer: z.string(),
  asset: z.string(),
  value: z.string(),
  /** The token's unit, to format amounts; null if the token is unknown. */
  token: tokenSchema.nullable().default(null),
  [nonceMember]: z.string(),
  requests: z.array(journalRequest),
  open: z.array(openRequest).default([]),
  rpcCalls: z.array(journalRpcCall),
  transactions: z.array(journalTransaction),
  /** The causes of the latest refusal and their fixes, as shown by the studio and `x402-kit why`. */
  explanations: z.array(explanationSchema).default([]),
});

export type PaymentJournal = z.infer<typeof paymentJournalSchema>;
export type JournalRequest = PaymentJournal["requests"][number];
export type OpenRequest = PaymentJournal["open"][number];
export type JournalRpcCall = PaymentJournal["rpcCalls"][number];
export type JournalTransaction = PaymentJournal["transactions"][number];

/** The service's timeline, joined with the nodes' answers. */
export type JournalStore = ReturnType<typeof createJournalStore>;

/** Reads payments as the studio does. */
export type PaymentReader = {
  /** Explains why a payment was refused, by its id or the hash of its transaction. */
  explain(id: Hex): Promise<PaymentJournal["explanations"]>;
  /** The outcome of each payment, newest first. */
  list(): Promise<readonly PaymentSummary[]>;
};

export const noJournal = () =>
  new KitError("This harness keeps no journal", {
    hints: ["Start it with createHarness({ journal: true }), or `x402-kit up --journal`"],
  });

/** How many JSON-RPC calls are kept, so that a harness can run for days without filling the memory. */
const mostCalls = 20_000;

type Call = JournalRpcCall & {
  /** The parameters as lower-case JSON, cached on first use. */
  text?: string;
};

/**
 * Creates a journal from a timeline and the exchanges with the nodes. Exchanges are matched with payments by content; see
 * {@link isAbout}.
 *
 * @param tokens known tokens besides the networks' own
 */
export function createJournalStore(timeline: Timeline, tokens?: KnownTokens) {
  let calls: Call[] = [];

  function callsOf(record: PaymentRecord): JournalRpcCall[] {
    const hashes = new Set<unknown>(
      record.entries.flatMap((entry) => (entry.kind === "transaction" ? entry.transaction : [])),
    );
    return calls
      .filter((call) => hashes.has(call.params[0]) || isAbout(record, textOf(call)))
      .map(({ text: _, ...call }) => call);
  }

  return {
    /** Records an exchange through the proxy between the service and a node. */
    onExchange({ at, tookMs, calls: ofExchange }: ProxiedExchange) {
      for (const { method, params, answer, faults } of ofExchange) {
        const { result, error } = answer;
        calls.push({
          at,
          tookMs,
          method,
          params: [...params],
          answer: { result, error },
          faults: [...faults],
        });
      }
      if (calls.length > 2 * mostCalls) calls = calls.slice(-mostCalls);
    },

    /** Returns everything about a payment, by its settlement id or the hash of its transaction; undefined if unknown. */
    payment(id: Hex) {
      const record = timeline.find(id.toLowerCase());
      if (record?.request === undefined) return undefined;
      return {
        ...termsOf(record.request, tokens),
        ...requestsOf(record),
        rpcCalls: callsOf(record),
        transactions: transactionsOf(record),
      };
    },

    payments: () =>
      [...timeline.records()]
        .sort((a, b) => a.firstSeenAt - b.firstSeenAt)
        .flatMap(({ request }) => request?.settlementId ?? []),

    /** Returns the requests that held no readable payment, oldest first. */
    otherRequests: () =>
      [...timeline.records()]
        .flatMap((record) => (record.request === undefined ? otherRequestsOf(record) : []))
        .sort((a, b) => a.at - b.at),

    clear() {
      calls = [];
    },
  };
}

function textOf(call: Call): string {
  call.text ??= JSON.stringify(call.params).toLowerCase();
  return call.text;
}

function termsOf(
  request: PaymentRequest,
  tokens: KnownTokens | undefined,
): Pick<PaymentJournal, "id" | "network" | "payer" | "asset" | "value" | "token" | typeof nonceMember> {
  const { settlementId, knownNetwork, requirements, payment } = request;
  return {
    id: settlementId,
    network: knownNetwork.name,
    payer: payment.payer,
    asset: requirements.asset,
    value: `${payment.limit}`,
    token: unitsOfPayment(request, tokens),
    [nonceMember]: payment.nonce,
  };
}

/** The finished and the open requests of a payment, each with the checks made for it. */
function requestsOf({ entries }: PaymentRecord): { requests: JournalRequest[]; open: OpenRequest[] } {
  const requests: JournalRequest[] = [];
  const open = new Map<string | null, OpenRequest>();
  for (const entry of entries) {
    if (entry.kind === "request") {
      const { operation, requestId, at } = entry;
      open.set(requestId, { operation, requestId, at, checks: [] });
    } else if (entry.kind === "checks") {
      for (const { check, refusal } of entry.checks) {
        open.get(entry.requestId)?.checks.push({ at: entry.at, check, passed: refusal === undefined });
      }
    } else if (entry.kind === "answer") {
      const { operation, requestId, status = null, tookMs, result, at } = entry;
      const begun = open.get(requestId);
      open.delete(requestId);
      // The request entry is published only once the body is read, and the answer entry maybe a while after the answer.
      const begunAt = Math.min(begun?.at ?? at, at - tookMs);
      const checks = begun?.checks ?? [];
      requests.push({ operation, requestId, status, tookMs, ...result, at: begunAt, checks });
    }
  }
  return { requests: requests.sort((a, b) => a.at - b.at), open: [...open.values()] };
}

/** The distinct transactions sent for a payment, in order. */
function transactionsOf({ entries }: PaymentRecord): JournalTransaction[] {
  const found = new Map<Hex, JournalTransaction>();
  let payments = 0;
  for (const entry of entries) {
    if (entry.kind !== "transaction") continue;
    const { step, transaction: hash, at } = entry;
    if (step === "signed" && entry.purpose !== "noop") {
      // The entry of a replacement transaction does not list its payments.
      payments = entry.settlementIds.length || payments;
      found.set(hash, { hash, txNonce: entry.txNonce, sentAt: 0, payments });
    }
    const transaction = found.get(hash);
    if (transaction === undefined) continue;
    if (step === "broadcast") transaction.sentAt ||= at;
    if (step !== "receipt") continue;
    transaction.mined ??= { at, blockNumber: `${entry.blockNumber}`, succeeded: entry.succeeded };
  }
  return [...found.values()].filter(({ sentAt }) => sentAt > 0);
}

function otherRequestsOf({ entries }: PaymentRecord): OtherRequest[] {
  return entries.flatMap((entry): OtherRequest[] => {
    if (entry.kind === "unrouted") {
      const { at, requestId, method, path, status, message } = entry;
      return [{ at, requestId, asked: `${method} ${path}`, status, message }];
    }
    if (entry.kind !== "answer") return [];
    const { at, requestId, operation, status = null, result, tookMs, received } = entry;
    const { reason, message } = result;
    return [
      {
        at: at - tookMs,
        requestId,
        asked: `POST /v1/${operation}`,
        status,
        ...(reason !== undefined && { reason }),
        ...(message !== undefined && { message }),
        ...(received !== undefined && { received: received.text }),
      },
    ];
  });
}
