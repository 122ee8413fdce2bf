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
  /** The unit of amounts; null if the token is unknown. */
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

/** The record of a service: the timeline, with the answers of the nodes. */
export type JournalStore = ReturnType<typeof createJournalStore>;

/** Reads the store of payments as the studio does. */
export type PaymentReader = {
  /** Why a payment was refused, by its id or the hash of its transaction. */
  explain(id: Hex): Promise<PaymentJournal["explanations"]>;
  /** The outcome of each payment, newest first. */
  list(): Promise<readonly PaymentSummary[]>;
};

export const noJournal = () =>
  new KitError("This harness keeps no journal", {
    hints: ["Start it with createHarness({ journal: true }), or `x402-kit up --journal`"],
  });

/** How many JSON-RPC calls are kept, so that a harness that runs for days does not fill the memory. */
const mostCalls = 20_000;

type Call = JournalRpcCall & {
  /** The parameters as lower-case JSON, once they were looked for. */
  text?: string;
};

/**
 * Makes a journal of a timeline and of the exchanges with the nodes, which are matched with payments by content: see
 * {@link isAbout}.
 *
 * @param tokens besides the networks' own
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
    /** Records an exchange over the proxy between the service and a node. */
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

    /** Everything about one payment, by its settlement id or the hash of its transaction; undefined when none is known. */
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

    /** The requests that held no readable payment, in their order. */
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

/** The requests of a payment that have ended, and those that have not, with the checks that were made for each. */
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
      // Its message comes when it has been read, and the one of its end may come later than the end.
      const begunAt = Math.min(begun?.at ?? at, at - tookMs);
      const checks = begun?.checks ?? [];
      requests.push({ operation, requestId, status, tookMs, ...result, at: begunAt, checks });
    }
  }
  return { requests: requests.sort((a, b) => a.at - b.at), open: [...open.values()] };
}

/** The transactions that were sent for a payment, each once, in their order. */
function transactionsOf({ entries }: PaymentRecord): JournalTransaction[] {
  const found = new Map<Hex, JournalTransaction>();
  let payments = 0;
  for (const entry of entries) {
    if (entry.kind !== "transaction") continue;
    const { step, transaction: hash, at } = entry;
    if (step === "signed" && entry.purpose !== "noop") {
      // One that replaces another says nothing of its payments.
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
