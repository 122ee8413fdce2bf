import type { PaymentRequest } from "../../protocol/requests.ts";
import { tellFailure } from "../channels/channel.ts";
import type { ReceivedBody } from "../channels/channels.ts";
import type { PaymentMessage } from "./payment-message.ts";
import type { KnownNames } from "./payment-overview.ts";
import { addToSummary, beginSummary, timelineOf } from "./payment-overview.ts";
import type { PaymentStore } from "./payment-store.ts";
import type { PaymentDetail, PaymentSummary, TimelineEntry } from "./payment-view.ts";
import type { StoredPayment } from "./stored-payment.ts";

/** A payment as the log tells it. */
export type LoggedPayment = {
  summary: PaymentSummary;
  request: PaymentRequest | undefined;
  /** The body that this was read of, as it came; undefined where it is not kept. */
  body: string | undefined;
  /** The body of a request in which no payment could be read. */
  received: ReceivedBody | undefined;
  /** The newest to each operation. */
  answers: PaymentDetail["answers"];
  timeline: TimelineEntry[];
  omitted: number;
};

/** Payments as readers of the studio see them. */
export type PaymentLog = {
  /** Newest first. */
  list(): readonly PaymentSummary[];
  /** By its id, or the hash of a transaction that carries it. */
  find(id: string): LoggedPayment | undefined;
  /** Those that changed after a version, in the order of their change. */
  changedSince(version: number): readonly PaymentSummary[];
  /** The version of the newest change; 0 where there was none. */
  newest(): number;
  /** Calls the listener soon after anything changed, once for many changes. Gives what ends that. */
  onChange(listener: () => void): () => void;
  /** Tells what the log knows from what it, or another one, knew before everything was forgotten. */
  era(): string;
  close(): void;
};

/** Changes are announced together. */
const announceEveryMs = 50;

/** A summary of a payment, and when the newest of the messages in it was published. */
type Row = { payment: StoredPayment; summary: PaymentSummary; changedAt: number };

function newestAnswers(messages: readonly PaymentMessage[]): PaymentDetail["answers"] {
  const newest = new Map<string, PaymentDetail["answers"][number]>();
  for (const message of messages) {
    if (!("result" in message)) continue;
    const { operation, status, answer: body } = message;
    if (status !== undefined && body !== undefined) newest.set(operation, { operation, status, body });
  }
  return [...newest.values()];
}

/**
 * Summaries and details of the payments in a store. Nothing is read before the first call; later calls process only what
 * is new.
 *
 * @param tokens besides the networks' own
 */
export function createPaymentLog(store: PaymentStore, names: KnownNames = {}): PaymentLog {
  /** In the order of their newest change. */
  const rows = new Map<string, Row>();
  const listeners = new Set<() => void>();
  let latest = 0;
  let era = store.era();
  let timer: NodeJS.Timeout | undefined;
  let unwatch: (() => void) | undefined;

  /** Takes in what has changed. Versions and order are of use to readers alone, and so made here. */
  function update(): void {
    if (era !== store.era()) {
      era = store.era();
      rows.clear();
      latest = 0;
    }
    let payments = 0;
    const changed: StoredPayment[] = [];
    for (const payment of store.payments()) {
      payments++;
      const row = rows.get(payment.id);
      if (row?.payment !== payment || row.changedAt !== payment.changedAt) changed.push(payment);
    }
    for (const payment of changed.sort((a, b) => a.changedAt - b.changedAt)) {
      // One that cannot be summed up must not hide all others.
      try {
        takeIn(payment);
      } catch (error) {
        tellFailure("A payment could not be summed up for the studio", error);
      }
    }
    if (rows.size === payments) return;
    for (const id of rows.keys()) if (store.find(id) === undefined) rows.delete(id);
  }

  function takeIn(payment: StoredPayment): void {
    const known = rows.get(payment.id);
    const isSame = known?.payment === payment;
    const row = isSame ? known : { payment, summary: beginSummary(payment, names), changedAt: 0 };
    const { changedAt } = payment;
    const { messages, times } = payment.after(row.changedAt);
    for (const [index, message] of messages.entries()) {
      addToSummary(row.summary, message, times[index] ?? changedAt, names);
    }
    row.changedAt = changedAt;
    row.summary.lastSeenAt = Math.floor(changedAt);
    row.summary.version = ++latest;
    rows.delete(payment.id);
    rows.set(payment.id, row);
  }

  function announce(): void {
    timer = undefined;
    for (const listener of listeners) {
      // Called by a timer, where what is thrown would end the process.
      try {
        listener();
      } catch (error) {
        tellFailure("A reader of the studio could not be told of a payment", error);
      }
    }
  }

  function summaries(): PaymentSummary[] {
    update();
    return [...rows.values()].map(({ summary }) => summary);
  }

  return {
    list: () => summaries().sort((a, b) => b.firstSeenAt - a.firstSeenAt),
    find(id) {
      const payment = store.find(id);
      if (payment === undefined) return undefined;
      update();
      const summary = rows.get(payment.id)?.summary;
      const { request, body, messages } = payment;
      const received = messages.flatMap((message) => ("received" in message ? (message.received ?? []) : []));
      const answers = newestAnswers(messages);
      if (summary === undefined) return undefined;
      return { summary, request, body, received: received.at(-1), answers, ...timelineOf(payment) };
    },
    changedSince(version) {
      update();
      const changed: PaymentSummary[] = [];
      for (const { summary } of [...rows.values()].reverse()) {
        if (summary.version <= version) break;
        changed.push(summary);
      }
      return changed.reverse();
    },
    newest() {
      update();
      return latest;
    },
    onChange(listener) {
      listeners.add(listener);
      unwatch ??= store.watch(() => {
        timer ??= setTimeout(announce, announceEveryMs).unref();
      });
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        unwatch?.();
        unwatch = undefined;
      };
    },
    era: () => store.era(),
    close() {
      clearTimeout(timer);
      unwatch?.();
    },
  };
}
