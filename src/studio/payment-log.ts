import { randomUUID } from "node:crypto";
import { channels } from "../channels/channels.ts";
import type { Hex } from "../protocol/hex.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { testPayers } from "../published/test-payers.ts";
import type { OperationView, PaymentSummary, TimelineEntry } from "./payment-view.ts";

/** A payment as the log keeps it. */
export type LoggedPayment = {
  summary: PaymentSummary;
  request: PaymentRequest | undefined;
  timeline: TimelineEntry[];
  omitted: number;
};

/** What a service did about each payment, kept in memory up to a bound; the oldest payments are forgotten first. */
export type PaymentLog = {
  /** Newest first. */
  list(): readonly PaymentSummary[];
  find(id: string): LoggedPayment | undefined;
  /** Those that changed after a version, in the order of their change. */
  changedSince(version: number): readonly PaymentSummary[];
  /** The version of the newest change. */
  version(): number;
  /** Calls the listener soon after anything changed, once for many changes. Gives what ends that. */
  onChange(listener: () => void): () => void;
  /** Tells what the log knows from what it, or another one, knew before {@link PaymentLog.clear}. */
  era(): string;
  /** Forgets everything, and begins another era. */
  clear(): void;
  close(): void;
};

/** Payments that are kept, and lines of each: a service that runs for weeks must not fill the memory. */
const mostPayments = 10_000;
const mostLines = 300;

/** Changes are announced together. */
const announceEveryMs = 50;

/** Calls of a batch belong to one of the payments that are open then; among more than these it is not worth saying. */
const mostSharing = 4;

const payerNames: ReadonlyMap<string, string> = new Map(
  Object.entries(testPayers).map(([name, { address }]) => [address.toLowerCase(), name]),
);

/** Keeps a log of the service with this id, from the diagnostics channels. */
export function createPaymentLog(serviceId: string, now: () => number = Date.now): PaymentLog {
  const payments = new Map<string, LoggedPayment>();
  const listeners = new Set<() => void>();
  const changed = new Set<LoggedPayment>();
  /** Which payments a transaction carries. */
  const carriedBy = new Map<Hex, readonly string[]>();
  /** Requests under way, by network: what goes to the node then is about them. */
  const openRequests = new Map<string, { id: string; network: string; requestId: string }>();
  /** Of a payment object of {@link channels.check}. */
  const requestOf = new WeakMap<PaymentRequest, string>();
  let latest = 0;
  let era = randomUUID();
  let timer: NodeJS.Timeout | undefined;

  /** Changes wait for the next announcement: versions and order are of use to readers alone. */
  function touch(payment: LoggedPayment): void {
    changed.add(payment);
    timer ??= setTimeout(announce, announceEveryMs).unref();
  }

  function announce(): void {
    timer = undefined;
    for (const payment of changed) {
      const { summary } = payment;
      // One that was forgotten meanwhile does not come back.
      if (payments.get(summary.id) !== payment) continue;
      summary.version = ++latest;
      summary.lastSeenAt = now();
      // Moved to the end: the map is in the order of changes.
      payments.delete(summary.id);
      payments.set(summary.id, payment);
    }
    changed.clear();
    for (const listener of listeners) listener();
  }

  function open(id: string, request: PaymentRequest | undefined): LoggedPayment {
    const known = payments.get(id);
    if (known !== undefined) {
      known.request ??= request;
      return known;
    }
    const at = now();
    const added: LoggedPayment = {
      summary: {
        id,
        version: 0,
        firstSeenAt: at,
        lastSeenAt: at,
        network: request?.knownNetwork.name ?? null,
        payer: request?.authorization.from ?? null,
        payerName: payerNames.get(request?.authorization.from.toLowerCase() ?? "") ?? null,
        amount: request === undefined ? null : `${request.authorization.value}`,
        asset: request?.requirements.asset ?? null,
        x402Version: request?.x402Version ?? null,
        verify: null,
        settle: null,
        ledger: null,
        transaction: null,
        delivered: null,
      },
      request,
      timeline: [],
      omitted: 0,
    };
    payments.set(id, added);
    if (payments.size > mostPayments) {
      const [oldest] = payments.keys();
      if (oldest !== undefined) payments.delete(oldest);
    }
    return added;
  }

  function note(
    payment: LoggedPayment | undefined,
    kind: TimelineEntry["kind"],
    title: string,
    entry: Partial<Omit<TimelineEntry, "kind" | "title">> = {},
  ): void {
    if (payment === undefined) return;
    if (payment.timeline.length >= mostLines) payment.omitted++;
    else {
      payment.timeline.push({
        at: now(),
        kind,
        title,
        ok: true,
        requestId: null,
        tookMs: null,
        details: {},
        ...entry,
      });
    }
    touch(payment);
  }

  const carried = (transaction: Hex) =>
    (carriedBy.get(transaction) ?? []).flatMap((id) => payments.get(id) ?? []);

  /** The payments with a request under way on a network, when they are few enough to say so. */
  function underWay(network: string): { payment: LoggedPayment; requestId: string }[] {
    const open = [...openRequests.values()].filter((one) => one.network === network);
    if (open.length > mostSharing) return [];
    return open.flatMap(({ id, requestId }) => {
      const payment = payments.get(id);
      return payment === undefined ? [] : [{ payment, requestId }];
    });
  }

  const isOurs = (message: { serviceId: string }) => message.serviceId === serviceId;

  const subscriptions = [
    channels.request.subscribe((message) => {
      if (!isOurs(message)) return;
      const { requestId, operation, payment: request, settlementId } = message;
      const payment = open(settlementId, request);
      requestOf.set(request, requestId);
      openRequests.set(requestId, { id: settlementId, network: request.knownNetwork.name, requestId });
      payment.summary[operation] = opened(payment.summary[operation]);
      note(payment, "request", `POST /v1/${operation}`, { requestId, details: { requestId } });
    }),
    channels.check.subscribe((message) => {
      if (!isOurs(message)) return;
      const { settlementId, payment: request, check, refusal } = message;
      note(payments.get(settlementId), "check", check, {
        ok: refusal === undefined,
        requestId: requestOf.get(request) ?? null,
        details: refusal === undefined ? {} : { reason: refusal.reason, message: refusal.message },
      });
    }),
    channels.payment.subscribe((message) => {
      if (!isOurs(message)) return;
      const { requestId, operation, payment: request, settlementId, status, result, tookMs } = message;
      openRequests.delete(requestId);
      const payment = open(settlementId ?? `request-${requestId}`, request);
      const { outcome, reason, message: text, transaction } = result;
      const before = payment.summary[operation];
      payment.summary[operation] = {
        outcome,
        status: status ?? null,
        reason: reason ?? null,
        message: text ?? null,
        tookMs,
        count: before?.outcome === "open" ? before.count : (before?.count ?? 0) + 1,
      };
      if (transaction !== undefined) payment.summary.transaction = transaction;
      note(payment, "answer", `${operation}: ${outcome}`, {
        ok: ["valid", "settled"].includes(outcome),
        requestId,
        tookMs,
        details: facts({ status, reason, message: text, transaction }),
      });
    }),
    channels.delivery.subscribe((message) => {
      if (!isOurs(message)) return;
      const payment = payments.get(message.settlementId);
      if (payment !== undefined) payment.summary.delivered = message.fate === "delivered";
      const title = { delivered: "answer delivered", lost: "answer lost", bounced: "answer reset" }[
        message.fate
      ];
      note(payment, "delivery", title, { ok: message.fate === "delivered", requestId: message.requestId });
    }),
    channels.settlement.subscribe((message) => {
      if (!isOurs(message)) return;
      const { serviceId: _, settlementId, step, ...rest } = message;
      const payment = payments.get(settlementId);
      if (payment === undefined) return;
      if (step !== "delivered") payment.summary.ledger = step;
      if ("transaction" in rest) payment.summary.transaction = rest.transaction;
      note(payment, "ledger", step, {
        ok: !["failed", "reorganized", "recoveryPostponed"].includes(step),
        details: facts(rest),
      });
    }),
    channels.transaction.subscribe((message) => {
      if (!isOurs(message)) return;
      const { serviceId: _, transaction, step, network: __, ...rest } = message;
      if ("settlementIds" in rest && rest.settlementIds.length > 0) {
        carriedBy.set(transaction, rest.settlementIds);
        if (carriedBy.size > mostPayments) {
          const [oldest] = carriedBy.keys();
          if (oldest !== undefined) carriedBy.delete(oldest);
        }
      }
      for (const payment of carried(transaction)) {
        payment.summary.transaction ??= transaction;
        const { settlementIds, ...details } =
          "settlementIds" in rest ? rest : { ...rest, settlementIds: undefined };
        note(payment, "transaction", step, {
          ok: !("succeeded" in rest) || rest.succeeded,
          details: {
            transaction,
            ...facts(details),
            ...(settlementIds !== undefined && { payments: settlementIds.length }),
          },
        });
      }
    }),
    channels.rpc.subscribe((message) => {
      if (!isOurs(message)) return;
      const { network, endpoint, methods, durationMs, error } = message;
      for (const { payment, requestId } of underWay(network)) {
        note(payment, "rpc", methods.join(", "), {
          ok: error === undefined,
          requestId,
          tookMs: durationMs,
          details: facts({ endpoint, error }),
        });
      }
    }),
    channels.fault.subscribe((message) => {
      if (!isOurs(message)) return;
      const { network, kind, methods } = message;
      for (const { payment, requestId } of underWay(network)) {
        note(payment, "fault", kind, { ok: false, requestId, details: { methods: methods.join(", ") } });
      }
    }),
  ];

  return {
    list: () =>
      [...payments.values()].map(({ summary }) => summary).sort((a, b) => b.firstSeenAt - a.firstSeenAt),
    find: (id) => payments.get(id),
    changedSince(version) {
      const changed: PaymentSummary[] = [];
      for (const { summary } of [...payments.values()].reverse()) {
        if (summary.version <= version) break;
        changed.push(summary);
      }
      return changed.reverse();
    },
    version: () => latest,
    era: () => era,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    clear() {
      payments.clear();
      changed.clear();
      carriedBy.clear();
      openRequests.clear();
      era = randomUUID();
      latest = 0;
      for (const listener of listeners) listener();
    },
    close() {
      clearTimeout(timer);
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}

function opened(before: OperationView | null): OperationView {
  const none = { status: null, reason: null, message: null, tookMs: null };
  return { outcome: "open", ...none, count: (before?.count ?? 0) + 1 };
}

/** What can be shown of a message: texts, numbers and flags; big numbers as decimal text. */
function facts(values: Record<string, unknown>): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      if (typeof value === "bigint") return [[name, value.toString()]];
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? [[name, value]]
        : [];
    }),
  );
}
