import type { CheckObserver } from "../../facilitator/check-observer.ts";
import type { EndedPayment } from "../../http/plugins/request-log.ts";
import { settlementId } from "../../protocol/authorization.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { ProxiedExchange } from "../faults/fault-proxy.ts";
import { findTransactions } from "./find-transactions.ts";
import type { JournalRequest, JournalRpcCall, PaymentJournal } from "./payment-journal.ts";

/** What a service did, kept in memory. The first three are where its parts tell; the rest is for reading. */
export type JournalStore = {
  onCheck: CheckObserver;
  onPayment(ended: EndedPayment): void;
  onExchange(exchange: ProxiedExchange): void;
  /** Everything about one payment, by its settlement id; undefined when no request has named it. */
  payment(id: Hex): PaymentJournal | undefined;
  /** The ids of the payments that requests have named, in the order of their first one. */
  payments(): readonly Hex[];
  clear(): void;
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
 * Makes a journal. What was said to the nodes is matched with payments by content: an authorization nonce is 32 random
 * bytes and stands in every simulation and every transaction of its payment, and the signature in what wallets are asked.
 */
export function createJournalStore(): JournalStore {
  const payments = new Map<Hex, Known>();
  const open = new WeakMap<PaymentRequest, JournalRequest["checks"]>();
  let calls: (JournalRpcCall & { text: string })[] = [];
  let requests = 0;

  function register(request: PaymentRequest): Known {
    const { knownNetwork, requirements, authorization, signature } = request;
    const id = settlementId(
      knownNetwork.chainId,
      requirements.asset,
      authorization.from,
      authorization.nonce,
    );
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

  return {
    onCheck(request, check, refusal) {
      const checks = open.get(request) ?? [];
      if (checks.length === 0) {
        // A request that never ends is worth reading about most.
        register(request);
        open.set(request, checks);
      }
      checks.push({ at: Date.now(), check, passed: refusal === undefined });
    },

    onPayment({ payment, operation, requestId, status = null, tookMs, result }) {
      if (payment === undefined) return;
      if (++requests > kept) {
        payments.clear();
        requests = 1;
      }
      register(payment).requests.push({
        operation,
        requestId,
        at: Date.now() - tookMs,
        tookMs,
        status,
        checks: open.get(payment) ?? [],
        ...result,
      });
    },

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
  };
}
