import { randomUUID } from "node:crypto";
import { publicationTime } from "../channels/channel.ts";
import {
  channels,
  type FaultHit,
  type RequestRead,
  type RpcRequested,
  type TransactionStep,
} from "../channels/channels.ts";
import type { PaymentMessage } from "./payment-message.ts";
import { paymentsHitBy } from "./payment-message.ts";
import { RecentPayments } from "./recent-payments.ts";
import type { TimedCall } from "./stored-messages.ts";
import { KeptTransaction } from "./stored-messages.ts";
import { KeptPayment, type StoredPayment } from "./stored-payment.ts";

/**
 * What a service did about each payment, kept in memory up to a bound: the studio and the journal read it. Until
 * they do, a message costs a look-up and a reference, a request few small objects: nothing is put in order, formatted or
 * counted before it is asked for.
 */
export type PaymentStore = {
  /** First the payments, about in the order of their newest requests, then the requests that were none. */
  payments(): Iterable<StoredPayment>;
  /** By its id, or the hash of a transaction that carries it: of several payments in one, the first. */
  find(id: string): StoredPayment | undefined;
  /** Calls the listener at every change, within the publishing of a message: it must be quick. Gives what ends that. */
  watch(listener: () => void): () => void;
  /** Another one after each {@link PaymentStore.clear}, and in each process. */
  era(): string;
  /** Forgets everything. */
  clear(): void;
  /** Ends the subscriptions. */
  close(): void;
};

/** How much a store keeps at most; of what exceeds it, the oldest is forgotten. */
export type StoreBounds = {
  readonly payments: number;
  /** Of all payments and transactions together. */
  readonly messages: number;
  /** Of one payment, and of one transaction. */
  readonly messagesEach: number;
};

/** A service that runs for weeks must not fill the memory. */
const most: StoreBounds = { payments: 10_000, messages: 80_000, messagesEach: 2_000 };

/** Among so many payments, the newest, those that a fault hit are looked for. */
const mostSearched = 500;

/** Keeps what the channels say about the payments of the service with this id. */
export function createPaymentStore(
  serviceId: string,
  bounds: StoreBounds = most,
  clock = publicationTime,
): PaymentStore {
  const recent = new RecentPayments(bounds.payments, forgetCarried);
  /** Those that carry payments, by their hashes; of each txNonce the newest, by that. */
  const transactions = new Map<string, KeptTransaction>();
  /** How many messages are kept of these. */
  let transactionMessages = 0;
  /** What came and is no readable payment, by itself: a flood of it must not push payments out. */
  const unreadable = new Map<string, KeptPayment>();
  const watchers = new Set<() => void>();
  /** The payment whose request was read last: its checks begin at once. */
  let newest: KeptPayment | undefined;
  let era = randomUUID();
  let lastTime = 0;

  function now(): number {
    const time = clock();
    // Where the clock was set back, readers must begin anew: they know messages by their times.
    if (time < lastTime) era = randomUUID();
    lastTime = time;
    return time;
  }

  function changed(): void {
    for (const watcher of watchers) watcher();
  }

  /** A transaction is forgotten with the last of its payments. */
  function forgetCarried(payment: KeptPayment): void {
    for (const transaction of payment.transactions) {
      if (--transaction.payments > 0) continue;
      transactionMessages -= transaction.kept;
      for (const key of transaction.keys) {
        if (transactions.get(key) === transaction) transactions.delete(key);
      }
    }
  }

  function count(of: KeptPayment | KeptTransaction, messages: number): void {
    if (of instanceof KeptPayment) recent.count(of, messages);
    else transactionMessages += messages;
  }

  /** Before a message is kept. */
  function makeRoom(of: KeptPayment | KeptTransaction): void {
    if (of.kept >= bounds.messagesEach) count(of, -of.forget(bounds.messagesEach / 2));
  }

  /** After one was. */
  function added(to: KeptPayment | KeptTransaction): void {
    count(to, 1);
    while (recent.messages + transactionMessages > bounds.messages && recent.forgetOldest());
    if (watchers.size > 0) changed();
  }

  function keep(of: KeptPayment | KeptTransaction | undefined, message: PaymentMessage, at = now()): void {
    if (of === undefined) return;
    makeRoom(of);
    of.keep(message, at);
    added(of);
  }

  function find(id: string): KeptPayment | undefined {
    return newest?.id === id ? newest : (recent.find(id) ?? unreadable.get(id));
  }

  /** The payment with this id, which is the newest from now on. */
  function renew(id: string, read: Pick<RequestRead, "payment" | "body">): KeptPayment {
    const known = recent.find(id);
    known?.take(read);
    const payment = known ?? new KeptPayment(id, read);
    recent.renew(payment);
    return payment;
  }

  /** What is kept of a request that is no readable payment. */
  function addUnreadable(requestId: string): KeptPayment {
    const id = `request-${requestId}`;
    // A twentieth at once: a map whose first entries were removed one by one takes long to find its first.
    if (unreadable.size >= bounds.payments / 2) {
      for (const oldest of unreadable.keys()) {
        unreadable.delete(oldest);
        if (unreadable.size <= 0.95 * (bounds.payments / 2)) break;
      }
    }
    const payment = new KeptPayment(id, undefined);
    unreadable.set(id, payment);
    return payment;
  }

  function keepForHit(message: FaultHit): void {
    const { calls: _, ...kept } = message;
    const hit = paymentsHitBy(message, recent.newest(mostSearched), (transaction) =>
      (transactions.get(transaction)?.ids ?? []).flatMap((id) => recent.find(id) ?? []),
    );
    for (const payment of hit) keep(payment, kept);
  }

  /** Keeps what a node was asked for each payment, or for the transactions that carry payments. */
  function keepForCallers({ endpoint, about, durationMs, error }: RpcRequested): void {
    const at = now();
    let calls: readonly [TimedCall] | undefined;
    for (const [subject, methods] of about) {
      const of = recent.find(subject) ?? transactions.get(subject);
      if (of === undefined) continue;
      if (calls?.[0].methods !== methods) calls = [{ endpoint, methods, durationMs, error, at }];
      makeRoom(of);
      of.call(calls);
      added(of);
    }
  }

  /** Keeps a transaction that was signed for payments, or for those that an earlier one of its txNonce carries. */
  function addTransaction(signed: Extract<TransactionStep, { step: "signed" }>): void {
    const { network, operator, txNonce, transaction, settlementIds } = signed;
    const place = `${network} ${operator} ${txNonce}`;
    const ids = settlementIds.length > 0 ? settlementIds : transactions.get(place)?.ids;
    if (ids === undefined) return;
    const kept = new KeptTransaction([transaction, place], ids);
    for (const id of ids) {
      const payment = recent.find(id);
      if (payment === undefined) continue;
      payment.carry(kept);
      recent.noteCarried(payment);
      kept.payments++;
    }
    if (kept.payments > 0) transactions.set(transaction, kept).set(place, kept);
  }

  const isOurs = (message: { serviceId: string }) => message.serviceId === serviceId;

  const subscriptions = [
    channels.request.subscribe((message) => {
      if (!isOurs(message)) return;
      newest = renew(message.settlementId, message);
      makeRoom(newest);
      newest.open(message, now());
      added(newest);
    }),
    channels.checks.subscribe((message) => {
      if (!isOurs(message)) return;
      const { settlementId, times } = message;
      const checked = find(settlementId);
      if (checked === undefined) return;
      makeRoom(checked);
      checked.check(message, times[0] ?? now());
      added(checked);
    }),
    channels.payment.subscribe((message) => {
      if (!isOurs(message)) return;
      const { payment, settlementId, requestId } = message;
      const ended =
        payment === undefined || settlementId === undefined
          ? addUnreadable(requestId)
          : (find(settlementId) ?? renew(settlementId, { payment, body: message.body }));
      makeRoom(ended);
      ended.end(message, now());
      added(ended);
    }),
    channels.unrouted.subscribe((message) => {
      // Browsers ask for it by themselves.
      if (!isOurs(message) || message.path === "/favicon.ico") return;
      const { requestId, method, path, status, message: text } = message;
      keep(addUnreadable(requestId), { requestId, method, path, status, message: text });
    }),
    channels.delivery.subscribe((message) => {
      if (isOurs(message)) keep(find(message.settlementId), message);
    }),
    channels.settlement.subscribe((message) => {
      if (isOurs(message)) keep(find(message.settlementId), message);
    }),
    channels.transaction.subscribe((message) => {
      if (!isOurs(message)) return;
      if (message.step === "signed") addTransaction(message);
      keep(transactions.get(message.transaction), message);
    }),
    channels.rpc.subscribe((message) => {
      if (isOurs(message)) keepForCallers(message);
    }),
    channels.fault.subscribe((message) => {
      if (isOurs(message)) keepForHit(message);
    }),
  ];

  return {
    *payments() {
      yield* recent.inOrder();
      yield* unreadable.values();
    },
    find: (id) => find(id) ?? recent.find(transactions.get(id)?.ids[0] ?? ""),
    watch(listener) {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    era: () => era,
    clear() {
      recent.clear();
      unreadable.clear();
      transactions.clear();
      transactionMessages = 0;
      newest = undefined;
      era = randomUUID();
      changed();
    },
    close() {
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}
