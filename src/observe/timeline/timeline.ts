import { randomUUID } from "node:crypto";
import { voucherIn } from "../../methods/batch-settlement/payloads.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import {
  type Channel,
  channels,
  type FromService,
  type Message,
  type PaymentOutcome,
  warnOfObserver,
} from "../channels/channels.ts";
import type { PaymentDetail } from "./payment-view.ts";
import {
  type Entry,
  type PaymentRecord,
  paymentsHitBy,
  RecordMap,
  type TimelineBounds,
  type WritableRecord,
} from "./record.ts";

/** The history of each payment in a service, kept in memory up to a limit. Everything that shows payments reads it. */
export type Timeline = {
  /**
   * Payments from an earlier run, as described at its end, newest first. Those that came again since have a record instead.
   */
  earlier(): readonly PaymentDetail[];
  /** Payments first, the least recently requested one first; then the requests without a readable payment. */
  records(): Iterable<PaymentRecord>;
  /** Finds a record by its id, or by the hash of a transaction that carries it (the first payment, if there are several). */
  find(id: string): PaymentRecord | undefined;
  /** The version of the newest change; 0 if there was none. */
  version(): number;
  /**
   * Calls the listener with each entry and the records it was added to; none if it concerns no known payment. The
   * call happens while the message is published, so the listener must be fast. Returns a function that ends it.
   */
  onEntry(listener: EntryListener): () => void;
  /** Calls the listener soon after a change, once for many changes. Returns a function that ends it. */
  onChange(listener: () => void): () => void;
  /** A random id; changes with each {@link Timeline.clear} and in each process. */
  epoch(): string;
  /** Forgets everything. */
  clear(): void;
  /** Ends the subscriptions. */
  close(): void;
};

type EntryListener = (entry: Entry, records: readonly PaymentRecord[]) => void;

export type TimelineOptions = {
  bounds?: TimelineBounds;
  /**
   * Reads a chain's time, in Unix seconds. The service itself does not read it for payments that it refuses because
   * of their signature or terms.
   */
  readTime?: ((network: string) => Promise<bigint | undefined> | undefined) | undefined;
  /** Payments from an earlier run, newest first. They are never dropped. */
  earlier?: readonly PaymentDetail[] | undefined;
};

/** A service that runs for weeks must not fill the memory. */
const usualBounds: TimelineBounds = { payments: 10_000, bytes: 100_000_000, entries: 2_000 };

/** Changes within this many milliseconds are announced together. */
const announceEveryMs = 50;

/** Only this many payments, the newest, are searched for those that a fault hit. */
const mostSearched = 500;

/** The outcomes for which the service has already asked the chain. */
const judgedByChain: readonly PaymentOutcome[] = ["valid", "settled", "pending"];

/** After a longer request, the chain's time at its end says nothing about its beginning. */
const longestLookMs = 1_000;

const none: readonly WritableRecord[] = [];

/** Records what the channels publish about the payments of the service with this id. */
export function createTimeline(serviceId: string, options?: TimelineOptions): Timeline {
  return new ChannelTimeline(serviceId, options);
}

class ChannelTimeline implements Timeline {
  readonly #bounds: TimelineBounds;
  readonly #readTime: TimelineOptions["readTime"];
  readonly #earlier: readonly PaymentDetail[];
  readonly #payments: RecordMap;
  /** Records without a readable payment, kept apart so that a flood of them cannot push payments out. */
  readonly #others: RecordMap;
  /** The payments that a transaction carries, by its hash, and by its network, operator and txNonce. */
  readonly #carried = new Map<string, readonly WritableRecord[]>();
  readonly #blocks = new Map<string, Message<"block">>();
  /** Payments at the shop without a response yet, by request id. */
  readonly #atShop = new Map<string, WritableRecord>();
  readonly #lookUps = new Map<string, Promise<bigint | undefined>>();
  readonly #listeners = new Set<EntryListener>();
  readonly #announcer = createAnnouncer();
  readonly #subscriptions: readonly (() => void)[];
  #version = 0;
  #epoch = randomUUID();

  constructor(serviceId: string, { bounds = usualBounds, readTime, earlier = [] }: TimelineOptions = {}) {
    this.#bounds = bounds;
    this.#readTime = readTime;
    this.#earlier = earlier;
    this.#payments = new RecordMap(bounds, (record) => this.#forgetCarriers(record));
    this.#others = new RecordMap(
      { ...bounds, payments: bounds.payments / 2, bytes: bounds.bytes / 4 },
      () => {},
    );

    function on<Message extends FromService>(
      channel: Channel<Message>,
      listener: (message: Message) => void,
    ): () => void {
      return channel.subscribe((message) => {
        if (message.serviceId === serviceId) listener(message);
      });
    }
    this.#subscriptions = [
      on(channels.request, (message) => this.#onRequest(message)),
      on(channels.checks, (message) => this.#onChecks(message)),
      on(channels.answer, (message) => this.#onAnswer(message)),
      on(channels.unrouted, (message) => this.#onUnrouted(message)),
      on(channels.delivery, (message) => this.#add(message, this.#recordsOf(message.settlementId))),
      on(channels.settlement, (message) => this.#add(message, this.#recordsOf(message.settlementId))),
      on(channels.transaction, (message) => this.#onTransaction(message)),
      on(channels.rpc, (message) => this.#onRpc(message)),
      on(channels.block, (message) => void this.#blocks.set(message.network, message)),
      on(channels.fault, (message) => this.#onFault(message)),
      on(channels.shop, (message) => this.#onShop(message)),
      on(channels.withdrawal, (message) => this.#onWithdrawal(message)),
    ];
  }

  earlier(): readonly PaymentDetail[] {
    return this.#earlier.filter(({ id }) => this.find(id) === undefined);
  }

  *records(): Generator<PaymentRecord> {
    yield* this.#payments.values();
    yield* this.#others.values();
  }

  find(id: string): PaymentRecord | undefined {
    return this.#payments.get(id) ?? this.#others.get(id) ?? this.#carriedBy(id)[0];
  }

  version(): number {
    return this.#version;
  }

  onEntry(listener: EntryListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onChange(listener: () => void): () => void {
    return this.#announcer.onChange(listener);
  }

  epoch(): string {
    return this.#epoch;
  }

  clear(): void {
    this.#payments.clear();
    this.#others.clear();
    this.#carried.clear();
    this.#blocks.clear();
    this.#atShop.clear();
    this.#version = 0;
    this.#epoch = randomUUID();
    this.#announcer.announce();
  }

  close(): void {
    for (const unsubscribe of this.#subscriptions) unsubscribe();
    this.#announcer.close();
  }

  #add(entry: Entry, records: readonly WritableRecord[]): void {
    for (const record of records) {
      record.add(entry, this.#bounds.entries);
      record.version = ++this.#version;
      (this.#payments.get(record.id) === record ? this.#payments : this.#others).count(record);
    }
    for (const listener of this.#listeners) {
      try {
        listener(entry, records);
      } catch (error) {
        warnOfObserver("What follows the timeline failed", error);
      }
    }
    if (records.length > 0) this.#announcer.announce();
  }

  #onRequest(message: Message<"request">): void {
    const { kind, at, requestId, operation, headers, payment, settlementId } = message;
    const record = this.#payments.renew(settlementId);
    record.ask(message.payment, message.body);
    record.begin({ requestId, payment });
    record.asked[operation]++;
    this.#add({ kind, at, requestId, operation, headers }, [record]);
  }

  #onChecks({ kind, at, settlementId, payment, checks }: Message<"checks">): void {
    const requestId = this.#payments.get(settlementId)?.openFor(payment) ?? null;
    const block = this.#blocks.get(payment.knownNetwork.name);
    this.#add({ kind, at, requestId, checks, block }, this.#recordsOf(settlementId));
  }

  #onAnswer(message: Message<"answer">): void {
    const { kind, at, requestId, headers, operation, received, status, answer, result, tookMs } = message;
    const record = this.#recordOf(message);
    if (!record.end(requestId)) record.asked[operation]++;
    this.#add({ kind, at, requestId, headers, operation, received, status, answer, result, tookMs }, [
      record,
    ]);
    if (message.payment === undefined || tookMs > longestLookMs) return;
    if (!judgedByChain.includes(result.outcome)) void this.#lookUpTime(message.payment, requestId);
  }

  /** The record that an answer belongs to; a request without a readable payment gets one of its own. */
  #recordOf({ payment, body, requestId }: Message<"answer">): WritableRecord {
    if (payment === undefined) return this.#recordOfUnreadable(requestId);
    const known = this.#payments.get(payment.settlementId);
    if (known !== undefined) return known;
    const record = this.#payments.renew(payment.settlementId);
    record.ask(payment, body);
    return record;
  }

  /** Looks up the chain's time for a request that was answered without it. */
  async #lookUpTime(
    { knownNetwork: { name }, settlementId }: PaymentRequest,
    requestId: string,
  ): Promise<void> {
    const record = this.#payments.get(settlementId);
    const lookUp = this.#lookUps.get(name) ?? this.#readTime?.(name);
    if (record === undefined || lookUp === undefined) return;
    this.#lookUps.set(name, lookUp);
    try {
      const timestamp = await lookUp;
      if (timestamp === undefined || this.#payments.get(settlementId) !== record) return;
      this.#add({ kind: "clock", at: Date.now(), requestId, timestamp }, [record]);
    } catch {
      // A chain that does not answer may have ended; its payments are shown without its time.
    } finally {
      this.#lookUps.delete(name);
    }
  }

  #onUnrouted(message: Message<"unrouted">): void {
    if (!isMeantForFacilitator(message)) return;
    this.#add(message, [this.#recordOfUnreadable(message.requestId)]);
  }

  /** The record of a facilitator request without a payment. If exactly one payment is open at a shop, it is about that one. */
  #recordOfUnreadable(requestId: string): WritableRecord {
    const [only, ...others] = this.#atShop.values();
    if (only !== undefined && others.length === 0) return only;
    for (const record of this.#atShop.values()) record.mayBeAsked = true;
    return this.#others.renew(`request-${requestId}`);
  }

  #onShop(message: Message<"shop">): void {
    const { requestId, settlementId } = message;
    const record =
      settlementId === undefined
        ? this.#others.renew(`request-${requestId}`)
        : this.#payments.renew(settlementId);
    if (message.step === "ended") {
      this.#atShop.delete(requestId);
      this.#add(message, [record]);
      return;
    }
    const { challenge } = message;
    if (challenge !== undefined && !record.entries.includes(challenge)) {
      const unpaid = this.#others.get(`request-${challenge.requestId}`);
      record.add(challenge, this.#bounds.entries);
      if (unpaid !== undefined) {
        unpaid.paidBy = record.id;
        unpaid.version = ++this.#version;
      }
    }
    record.mayBeAsked = false;
    this.#atShop.set(requestId, record);
    this.#add(message, [record]);
  }

  #onTransaction(message: Message<"transaction">): void {
    if (message.step === "signed") this.#carry(message);
    this.#add(message, this.#carriedBy(message.transaction));
  }

  /** Links a signed transaction to its payments, or to those of an earlier transaction with the same txNonce. */
  #carry(signed: Extract<Message<"transaction">, { step: "signed" }>): void {
    const { network, operator, txNonce, transaction, settlementIds } = signed;
    const place = `${network} ${operator} ${txNonce}`;
    const named = settlementIds.flatMap((id) => this.#recordsOf(id));
    const records = settlementIds.length > 0 ? named : this.#carriedBy(place);
    if (records.length === 0) return;
    for (const record of records) record.carriers = [...record.carriers, transaction, place];
    this.#carried.set(transaction, records).set(place, records);
  }

  #onRpc(message: Message<"rpc">): void {
    const { kind, at, network, endpoint, purpose, about, durationMs, error } = message;
    const subjects = about.size;
    for (const [subject, methods] of about) {
      const payment = this.#payments.get(subject);
      const requestId = payment?.onlyOpen() ?? null;
      const asked = { endpoint, purpose, methods, durationMs, error, subject, subjects, requestId };
      const records = payment === undefined ? this.#carriedBy(subject) : [payment];
      this.#add({ kind, at, network, ...asked }, records);
    }
  }

  #onFault(message: Message<"fault">): void {
    const { calls: _, ...kept } = message;
    const newest = [...this.#payments.values()].slice(-mostSearched);
    const hit = paymentsHitBy(message, newest, (transaction) => this.#carriedBy(transaction));
    for (const record of hit) this.#add({ ...kept, requestId: record.onlyOpen() }, [record]);
  }

  /** Concerns every payment into or out of the channel. */
  #onWithdrawal(message: Message<"withdrawal">): void {
    const ofChannel = [...this.#payments.values()].filter(
      ({ request }) => request !== undefined && voucherIn(request.payment)?.channelId === message.channel,
    );
    this.#add(message, ofChannel);
  }

  #recordsOf(settlementId: string): readonly WritableRecord[] {
    const record = this.#payments.get(settlementId);
    return record === undefined ? none : [record];
  }

  #carriedBy(transaction: string): readonly WritableRecord[] {
    return this.#carried.get(transaction) ?? none;
  }

  /** A transaction is forgotten together with the last of its payments. */
  #forgetCarriers(record: WritableRecord): void {
    for (const key of record.carriers) {
      const left = this.#carriedBy(key).filter((other) => other !== record);
      if (left.length === 0) this.#carried.delete(key);
      else this.#carried.set(key, left);
    }
  }
}

/** Calls listeners soon after changes, once for many. */
function createAnnouncer(): Pick<Timeline, "onChange" | "close"> & { announce(): void } {
  const listeners = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;

  function call(): void {
    timer = undefined;
    for (const listener of listeners) {
      // An exception in a timer callback would end the process.
      try {
        listener();
      } catch (error) {
        warnOfObserver("A reader of the timeline could not be notified", error);
      }
    }
  }

  return {
    announce() {
      if (listeners.size > 0) timer ??= setTimeout(call, announceEveryMs).unref();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => clearTimeout(timer),
  };
}

/** False for requests that browsers and crawlers make on their own: icons, robots.txt, preflights to unknown paths. */
function isMeantForFacilitator({ method, path, status }: Message<"unrouted">): boolean {
  const isGuess = method === "OPTIONS" && status !== 405;
  return method === "POST" || (!isGuess && /verify|settle|supported/i.test(path));
}
