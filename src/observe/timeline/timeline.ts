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

/** The history of each payment in a service, kept in memory up to a bound. Everything that shows payments reads it. */
export type Timeline = {
  /** Payments of an earlier run, as they were described at its end, the newest first. Those that came again have a record. */
  earlier(): readonly PaymentDetail[];
  /** First the payments, the one that was asked for longest ago first, then the requests that held none. */
  records(): Iterable<PaymentRecord>;
  /** By its id, or the hash of a transaction that carries it: of several payments in one, the first. */
  find(id: string): PaymentRecord | undefined;
  /** The version of the newest change; 0 where there was none. */
  version(): number;
  /**
   * Calls the listener with each entry, and the records that it stands in now, within the publishing of the message: it must
   * be quick. What is known of no payment stands in none. Gives what ends that.
   */
  onEntry(listener: EntryListener): () => void;
  /** Calls the listener soon after anything changed, once for many changes. Gives what ends that. */
  onChange(listener: () => void): () => void;
  /** Another one after each {@link Timeline.clear}, and in each process. */
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
   * Asks a chain for its time, unix seconds: the service itself asks none about a payment that it refuses for its signature
   * or terms.
   */
  readTime?: ((network: string) => Promise<bigint | undefined> | undefined) | undefined;
  /** Payments of an earlier run, the newest first. They are kept whatever is forgotten. */
  earlier?: readonly PaymentDetail[] | undefined;
};

/** A service that runs for weeks must not fill the memory. */
const usualBounds: TimelineBounds = { payments: 10_000, bytes: 100_000_000, entries: 2_000 };

/** Changes of so many milliseconds are announced at once. */
const announceEveryMs = 50;

/** Among so many payments, the newest, those that a fault hit are looked for. */
const mostSearched = 500;

/** How requests end for which the service has asked their chain. */
const judgedByChain: readonly PaymentOutcome[] = ["valid", "settled", "pending"];

/** Of a request that took longer, the chain's time at its end says nothing of its beginning. */
const longestLookMs = 1_000;

const none: readonly WritableRecord[] = [];

/** Keeps what the channels say about the payments of the service with this id. */
export function createTimeline(serviceId: string, options?: TimelineOptions): Timeline {
  return new ChannelTimeline(serviceId, options);
}

class ChannelTimeline implements Timeline {
  readonly #bounds: TimelineBounds;
  readonly #readTime: TimelineOptions["readTime"];
  readonly #earlier: readonly PaymentDetail[];
  readonly #payments: RecordMap;
  /** Records without a readable payment, kept apart: a flood of them must not push payments out. */
  readonly #others: RecordMap;
  /** The payments that a transaction carries, by its hash; and those of the newest of each txNonce, by that. */
  readonly #carried = new Map<string, readonly WritableRecord[]>();
  readonly #blocks = new Map<string, Message<"block">>();
  /** Payments at the shop whose answer is not there, by the id of the request. */
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

  /** The record that an answer stands in: of a request that held no payment, one of its own. */
  #recordOf({ payment, body, requestId }: Message<"answer">): WritableRecord {
    if (payment === undefined) return this.#recordOfUnreadable(requestId);
    const known = this.#payments.get(payment.settlementId);
    if (known !== undefined) return known;
    const record = this.#payments.renew(payment.settlementId);
    record.ask(payment, body);
    return record;
  }

  /** Notes the chain's time for a request that was answered without it. */
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

  /** The record of a request to the facilitator that names no payment: if a shop has one payment, it is about that. */
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

  /** A transaction that was signed carries its payments, or those of an earlier one of its txNonce. */
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

  /** It is news of every payment into or out of its channel. */
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

  /** A transaction is forgotten with the last of its payments. */
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
      // Called by a timer, where what is thrown would end the process.
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

/** Returns false for what browsers and crawlers request by themselves: icons, robots.txt, preflights to paths that do not exist. */
function isMeantForFacilitator({ method, path, status }: Message<"unrouted">): boolean {
  const isGuess = method === "OPTIONS" && status !== 405;
  return method === "POST" || (!isGuess && /verify|settle|supported/i.test(path));
}
