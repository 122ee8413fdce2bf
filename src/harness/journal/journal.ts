import { channels } from "../../channels/channels.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { ProxiedExchange } from "../faults/fault-proxy.ts";
import { findTransactions } from "./find-transactions.ts";
import type { JournalRequest, JournalRpcCall, PaymentJournal } from "./payment-journal.ts";

/** What a service did, kept in memory. */
export type JournalStore = {
  /** Takes in what went over the proxy between the service and a node. */
  onExchange(exchange: ProxiedExchange): void;
  /** Everything about one payment, by its settlement id; undefined when no request has named it. */
  payment(id: Hex): PaymentJournal | undefined;
  /** The ids of the payments that requests have named, in the order of their first one. */
  payments(): readonly Hex[];
  clear(): void;
  /** Ends the subscriptions. */
  close(): void;
};

/** How many requests, and how many JSON-RPC calls, are kept: a harness that runs for days must not fill the memory. */
const kept = 20_000;

type Known = {
  terms: Omit<PaymentJournal, "requests" | "rpcCalls" | "transactions">;
  requests: JournalRequest[];
  /** Hexadecimal digits by which a call is known to be about the payment. */
  marks: readonly string[];
};

/** So many digits of a signature are one's own; shorter ones, which are malformed, mark nothing. */
const markLength = 64;

function isAbout(marks: readonly string[], text: string): boolean {
  return marks.some((mark) => mark.length === markLength && text.includes(mark));
}

/**
 * Makes a journal of the service with this id. What was said to the nodes is matched with payments by content: an authorization nonce is 32 random
 * bytes and stands in every simulation and every transaction of its payment, and the signature in what wallets are asked.
 */
export function createJournalStore(serviceId: string): JournalStore {
  const payments = new Map<Hex, Known>();
  const open = new WeakMap<PaymentRequest, JournalRequest["checks"]>();
  let calls: (JournalRpcCall & { text: string })[] = [];
  let requests = 0;

  function register(request: PaymentRequest): Known {
    const { settlementId: id, knownNetwork, requirements, authorization, signature } = request;
    const known = payments.get(id);
    if (known !== undefined) return known;
    const added: Known = {
      terms: {
        id,
        network: knownNetwork.name,
        payer: authorization.from,
        asset: requirements.asset,
        value: `${authorization.value}`,
        authorizationNonce: authorization.nonce,
      },
      requests: [],
      marks: [authorization.nonce.slice(2), signature.slice(2, 2 + markLength)].map((mark) =>
        mark.toLowerCase(),
      ),
    };
    payments.set(id, added);
    return added;
  }

  const subscriptions = [
    // A request that never ends is worth reading about most.
    channels.request.subscribe(({ serviceId: from, payment }) => {
      if (from === serviceId) register(payment);
    }),
    channels.check.subscribe(({ serviceId: from, payment, check, refusal }) => {
      if (from !== serviceId) return;
      const checks = open.get(payment) ?? [];
      open.set(payment, checks);
      checks.push({ at: Date.now(), check, passed: refusal === undefined });
    }),
    channels.payment.subscribe(({ serviceId: from, payment, ...ended }) => {
      if (from !== serviceId || payment === undefined) return;
      const { operation, requestId, status = null, tookMs, result } = ended;
      if (++requests > kept) {
        payments.clear();
        requests = 1;
      }
      register(payment).requests.push({
        ...{ operation, requestId, status, tookMs, ...result },
        at: Date.now() - tookMs,
        checks: open.get(payment) ?? [],
      });
    }),
  ];

  return {
    onExchange({ at, tookMs, calls: ofExchange }) {
      for (const { method, params, answer, faults } of ofExchange) {
        const text = JSON.stringify(params).toLowerCase();
        const { result, error } = answer;
        calls.push({
          at,
          tookMs,
          method,
          params: [...params],
          answer: { result, error },
          faults: [...faults],
          text,
        });
      }
      if (calls.length > 2 * kept) calls = calls.slice(-kept);
    },

    payment(id) {
      const known = payments.get(id);
      if (known === undefined) return undefined;
      const { terms, requests: ofRequests, marks } = known;
      const ofPayment = calls.filter(({ text }) => isAbout(marks, text));
      const all = [...payments.values()];
      const transactions = findTransactions(
        ofPayment,
        calls,
        (raw) => all.filter((each) => isAbout(each.marks, raw.toLowerCase())).length,
      );
      const hashes = new Set(transactions.map(({ hash }) => hash));
      const rpcCalls = calls
        .filter(
          (call) =>
            ofPayment.includes(call) || (typeof call.params[0] === "string" && hashes.has(call.params[0])),
        )
        .map(({ text: _, ...call }) => call);
      return { ...terms, requests: ofRequests.toSorted((a, b) => a.at - b.at), rpcCalls, transactions };
    },

    payments: () => [...payments.keys()],

    clear() {
      payments.clear();
      calls = [];
      requests = 0;
    },

    close() {
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}
