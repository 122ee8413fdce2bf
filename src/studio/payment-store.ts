import { randomUUID } from "node:crypto";
import { channels, type FaultHit, type RpcRequested } from "../channels/channels.ts";
import { publicationTime } from "../channels/publication-time.ts";
import type { Hex } from "../protocol/hex.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { paymentsHitBy } from "./find-hit.ts";
import type { PaymentMessage } from "./payment-message.ts";
import { KeptPayment, type StoredPayment } from "./stored-payment.ts";
import type { NodeCall } from "./stored-request.ts";

/**
 * What a service did about each payment, kept in memory up to a bound: the studio and the journal read it. Until
 * they do, a message costs a look-up and a reference, a request two small objects: nothing is formatted or counted
 * before it is asked for.
 */
export type PaymentStore = {
  /** In the order of their newest request. */
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

/** How much is kept: a service that runs for weeks must not fill the memory. The oldest payments are forgotten first. */
const most = { payments: 10_000, messages: 80_000, messagesEach: 2_000 };

/** Among so many payments, the newest, those that a fault hit are looked for. */
const mostSearched = 500;

/** Keeps what the channels say about the payments of the service with this id. */
export function createPaymentStore(serviceId: string, bounds = most, now = publicationTime): PaymentStore {
  const payments = new Map<string, KeptPayment>();
  /** Those of them that are no readable payments. At most half: a flood must not push all payments out. */
  const unreadable = new Set<string>();
  const watchers = new Set<() => void>();
  /** Which payments a transaction carries, by their ids; of its txNonce too, whose later transactions do not say. */
  const carriedBy = new Map<string, readonly Hex[]>();
  /** The payment whose request was read last: its checks begin at once. */
  let newest: KeptPayment | undefined;
  let messages = 0;
  let era = randomUUID();

  function changed(): void {
    for (const watcher of watchers) watcher();
  }

  /** Forgets a twentieth at once: a map whose first entries were removed one by one takes long to find its first. */
  function forgetOldest(): void {
    for (const [id, oldest] of payments) {
      if (payments.size <= 0.95 * bounds.payments && messages <= 0.95 * bounds.messages) return;
      forget(id, oldest);
    }
  }

  function forget(id: string, payment: KeptPayment | undefined): void {
    payments.delete(id);
    unreadable.delete(id);
    messages -= payment?.kept ?? 0;
    if (payment === newest) newest = undefined;
  }

  /** A twentieth at once, as above. */
  function forgetOldestUnreadable(): void {
    if (unreadable.size <= bounds.payments / 2) return;
    for (const id of unreadable) {
      if (unreadable.size <= 0.95 * (bounds.payments / 2)) return;
      forget(id, payments.get(id));
    }
  }

  function forgetOldestTransactions(): void {
    if (carriedBy.size <= 2 * bounds.payments) return;
    for (const transaction of carriedBy.keys()) {
      if (carriedBy.size <= 1.9 * bounds.payments) return;
      carriedBy.delete(transaction);
    }
  }

  /** Before a message of the payment is kept. */
  function makeRoom(payment: KeptPayment): void {
    if (payment.kept >= bounds.messagesEach) messages -= payment.forget(bounds.messagesEach / 2);
  }

  /** After one was. */
  function count(): void {
    messages++;
    if (messages > bounds.messages) forgetOldest();
    if (watchers.size > 0) changed();
  }

  function keep(payment: KeptPayment | undefined, message: PaymentMessage): void {
    if (payment === undefined) return;
    makeRoom(payment);
    payment.keep(message, now());
    count();
  }

  /** The payment with this id, which is the newest from now on. */
  function renew(id: string, request: PaymentRequest | undefined): KeptPayment {
    const known = payments.get(id);
    const payment = known ?? new KeptPayment(id, request);
    if (known !== undefined) payments.delete(id);
    payments.set(id, payment);
    if (known === undefined && request === undefined) {
      unreadable.add(id);
      forgetOldestUnreadable();
    }
    if (payments.size > bounds.payments) forgetOldest();
    return payment;
  }

  function hitBy(message: FaultHit): Iterable<KeptPayment> {
    return paymentsHitBy(message, [...payments.values()].slice(-mostSearched), (transaction) =>
      (carriedBy.get(transaction) ?? []).flatMap((id) => payments.get(id) ?? []),
    );
  }

  function keepForHit(message: FaultHit): void {
    const { calls: _, ...kept } = message;
    for (const payment of hitBy(message)) {
      if (payments.get(payment.id) === payment) keep(payment, kept);
    }
  }

  /** Keeps for each payment what was asked for it, or for the transaction that carries it. */
  function keepForCallers(message: RpcRequested): void {
    const { endpoint, about, durationMs, error } = message;
    const at = now();
    let calls: readonly [NodeCall] | undefined;
    for (const [subject, methods] of about) {
      const payment = payments.get(subject);
      if (payment === undefined) {
        for (const id of carriedBy.get(subject) ?? []) keep(payments.get(id), message);
        continue;
      }
      if (calls?.[0].methods !== methods) calls = [{ endpoint, methods, durationMs, error, at }];
      makeRoom(payment);
      payment.call(message, calls);
      count();
    }
  }

  const isOurs = (message: { serviceId: string }) => message.serviceId === serviceId;

  const subscriptions = [
    channels.request.subscribe((message) => {
      if (!isOurs(message)) return;
      newest = renew(message.settlementId, message.payment);
      makeRoom(newest);
      newest.open(message, now());
      count();
    }),
    channels.checks.subscribe((message) => {
      if (!isOurs(message)) return;
      const { settlementId, times } = message;
      const checked = newest?.id === settlementId ? newest : payments.get(settlementId);
      if (checked === undefined) return;
      makeRoom(checked);
      checked.check(message, times[0] ?? now());
      count();
    }),
    channels.payment.subscribe((message) => {
      if (!isOurs(message)) return;
      const { payment, settlementId, requestId } = message;
      const id = settlementId ?? `request-${requestId}`;
      const ended = payments.get(id) ?? renew(id, payment);
      makeRoom(ended);
      ended.end(message, now());
      count();
    }),
    channels.unrouted.subscribe((message) => {
      // Browsers ask for it by themselves.
      if (!isOurs(message) || message.path === "/favicon.ico") return;
      const { requestId, method, path, status, message: text } = message;
      keep(renew(`request-${requestId}`, undefined), { requestId, method, path, status, message: text });
    }),
    channels.delivery.subscribe((message) => {
      if (isOurs(message)) keep(payments.get(message.settlementId), message);
    }),
    channels.settlement.subscribe((message) => {
      if (isOurs(message)) keep(payments.get(message.settlementId), message);
    }),
    channels.transaction.subscribe((message) => {
      if (!isOurs(message)) return;
      if (message.step === "signed") {
        const txNonce = `${message.network} ${message.operator} ${message.txNonce}`;
        const { settlementIds } = message;
        const carried = settlementIds.length > 0 ? settlementIds : carriedBy.get(txNonce);
        if (carried !== undefined) carriedBy.set(message.transaction, carried).set(txNonce, carried);
        forgetOldestTransactions();
      }
      for (const id of carriedBy.get(message.transaction) ?? []) keep(payments.get(id), message);
    }),
    channels.rpc.subscribe((message) => {
      if (isOurs(message)) keepForCallers(message);
    }),
    channels.fault.subscribe((message) => {
      if (isOurs(message)) keepForHit(message);
    }),
  ];

  return {
    payments: () => payments.values(),
    find: (id) => payments.get(id) ?? payments.get(carriedBy.get(id)?.[0] ?? ""),
    watch(listener) {
      watchers.add(listener);
      return () => watchers.delete(listener);
    },
    era: () => era,
    clear() {
      payments.clear();
      unreadable.clear();
      newest = undefined;
      carriedBy.clear();
      messages = 0;
      era = randomUUID();
      changed();
    },
    close() {
      for (const unsubscribe of subscriptions) unsubscribe();
    },
  };
}
