import { nonceMember } from "../../methods/nonce-member.ts";
import { checksOf } from "../../observe/channels/channels.ts";
import { createRequestIds, isAbout, marksOf } from "../../observe/studio/payment-message.ts";
import type { PaymentStore } from "../../observe/studio/payment-store.ts";
import type { StoredPayment } from "../../observe/studio/stored-payment.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { type KnownTokens, unitsOfPayment } from "../../protocol/token-units.ts";
import type { ProxiedExchange } from "../faults/fault-proxy.ts";
import { findTransactions } from "./find-transactions.ts";
import type {
  JournalRequest,
  JournalRpcCall,
  OpenRequest,
  OtherRequest,
  PaymentJournal,
} from "./payment-journal.ts";

/** What a service did, kept in memory. */
export type JournalStore = {
  /** Records an exchange over the proxy between the service and a node. */
  onExchange(exchange: ProxiedExchange): void;
  /** Everything about one payment, by its settlement id or the hash of its transaction; undefined when none is known. */
  payment(id: Hex): Omit<PaymentJournal, "explanations"> | undefined;
  /** The ids of the payments in requests, in the order of their first request. */
  payments(): readonly Hex[];
  /** The requests that held no readable payment, in their order. */
  otherRequests(): readonly OtherRequest[];
  /** Forgets the calls. */
  clear(): void;
};

/** How many JSON-RPC calls are kept, so that a harness that runs for days does not fill the memory. */
const kept = 20_000;

type Call = JournalRpcCall & {
  /** The parameters as lower-case JSON, once they were looked for. */
  text?: string;
};

/**
 * Makes a journal from the store of payments and from the exchanges with the nodes, which are matched with payments
 * by content: see {@link marksOf}.
 *
 * @param tokens besides the networks' own
 */
export function createJournalStore(store: PaymentStore, tokens?: KnownTokens): JournalStore {
  let calls: Call[] = [];

  return {
    onExchange({ at, tookMs, calls: ofExchange }) {
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
      if (calls.length > 2 * kept) calls = calls.slice(-kept);
    },

    payment(id) {
      const payment = store.find(id.toLowerCase());
      const request = payment?.request;
      if (payment === undefined || request === undefined) return undefined;
      const marks = marksOf(payment);
      const ofPayment = calls.filter((call) => isAbout(marks, textOf(call)));
      const all = [...store.payments()].map(marksOf);
      const transactions = findTransactions(
        ofPayment,
        calls,
        (raw) => all.filter((each) => isAbout(each, raw.toLowerCase())).length,
      );
      const hashes = new Set(transactions.map(({ hash }) => hash));
      const rpcCalls = calls
        .filter(
          (call) =>
            ofPayment.includes(call) || (typeof call.params[0] === "string" && hashes.has(call.params[0])),
        )
        .map(({ text: _, ...call }) => call);
      const { ended, open } = requestsOf(payment);
      const requests = ended.toSorted((a, b) => a.at - b.at);
      return { ...termsOf(request, tokens), requests, open, rpcCalls, transactions };
    },

    payments: () =>
      [...store.payments()]
        .flatMap(({ settlementId: id, times: [begunAt = 0] }) => (id === undefined ? [] : { id, begunAt }))
        .sort((a, b) => a.begunAt - b.begunAt)
        .map(({ id }) => id),

    otherRequests: () =>
      [...store.payments()]
        .flatMap((payment) => (payment.settlementId === undefined ? otherRequestsOf(payment) : []))
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
): Omit<PaymentJournal, "requests" | "open" | "rpcCalls" | "transactions" | "explanations"> {
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
function requestsOf({ messages, times }: StoredPayment): { ended: JournalRequest[]; open: OpenRequest[] } {
  const requestIds = createRequestIds();
  const checks = new Map<string | null, JournalRequest["checks"]>();
  const ended: JournalRequest[] = [];
  const open = new Map<string, Omit<OpenRequest, "checks">>();
  for (const [index, message] of messages.entries()) {
    const at = Math.floor(times[index] ?? 0);
    const id = requestIds.of(message);
    if ("checks" in message) {
      const made = checksOf(message).map(({ check, refusal, ...one }) => ({
        ...{ at: Math.floor(one.at), check },
        passed: refusal === undefined,
      }));
      checks.set(id, made);
    } else if ("result" in message) {
      const { operation, requestId, status = null, tookMs, result } = message;
      // Its message comes when it has been read, and the one of its end may come later than the end.
      const begunAt = Math.min(open.get(requestId)?.at ?? at, at - tookMs);
      open.delete(requestId);
      ended.push({
        ...{ operation, requestId, status, tookMs, ...result },
        at: begunAt,
        checks: checks.get(requestId) ?? [],
      });
    } else if ("operation" in message) {
      const { operation, requestId } = message;
      open.set(requestId, { operation, requestId, at });
    }
  }
  const withChecks = [...open.values()].map((one) => ({ ...one, checks: checks.get(one.requestId) ?? [] }));
  return { ended, open: withChecks };
}

function otherRequestsOf({ messages, times }: StoredPayment): OtherRequest[] {
  return messages.flatMap((message, index): OtherRequest[] => {
    const at = Math.floor(times[index] ?? 0);
    if ("path" in message) {
      const { requestId, method, path, status, message: text } = message;
      return [{ at, requestId, asked: `${method} ${path}`, status, message: text }];
    }
    if (!("result" in message)) return [];
    const { requestId, operation, status = null, result, tookMs, received } = message;
    const { reason, message: text } = result;
    return [
      {
        ...{ at: at - tookMs, requestId, asked: `POST /v1/${operation}`, status },
        ...(reason !== undefined && { reason }),
        ...(text !== undefined && { message: text }),
        ...(received !== undefined && { received: received.text }),
      },
    ];
  });
}
