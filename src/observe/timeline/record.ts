import type { Hex } from "../../protocol/hex.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { FaultHit, Message, ReceivedBody } from "../channels/channels.ts";

/** A message as records keep it: without the payment, which the record has, and without signatures. */
export type Entry =
  | RequestEntry
  | ChecksEntry
  | AnswerEntry
  | Message<"unrouted">
  | Message<"delivery">
  | Message<"settlement">
  | Message<"transaction">
  | RpcEntry
  | FaultEntry
  | ShopEntry
  | ClockEntry
  | Message<"withdrawal">;

export type RequestEntry = Pick<Message<"request">, "kind" | "at" | "requestId" | "operation" | "headers">;

type ChecksEntry = Pick<Message<"checks">, "kind" | "at" | "checks"> & {
  /** The request that they were made for; null where none that was published is open. */
  readonly requestId: string | null;
  /** The newest block of the payment's network that the service had seen. */
  readonly block: Message<"block"> | undefined;
};

export type AnswerEntry = Omit<Message<"answer">, "serviceId" | "payment" | "settlementId" | "body">;

/** Calls in one HTTP request to a node that were made for the payment, or for a transaction that carries it. */
export type RpcEntry = Omit<Message<"rpc">, "serviceId" | "about"> & {
  /** The settlement id, or the hash of the transaction. */
  readonly subject: Hex;
  /** How many payments and transactions shared the HTTP request. */
  readonly subjects: number;
  /** The only request of the payment that was open; null where that is not certain. */
  readonly requestId: string | null;
};

type FaultEntry = Omit<Message<"fault">, "calls"> & Pick<RpcEntry, "requestId">;

/** A request to the shop, or its end; see `up --shop`. */
export type ShopEntry = Message<"shop">;

type ShopSent = Extract<ShopEntry, { step: "sent" }>;
export type ShopEnd = Extract<ShopEntry, { step: "ended" }>;

/** The chain's time, looked up for a request that was answered without it. */
type ClockEntry = {
  readonly kind: "clock";
  readonly at: number;
  readonly requestId: string;
  /** Unix seconds. */
  readonly timestamp: bigint;
};

/** All that was published about one payment. Times are unix milliseconds. */
export type PaymentRecord = {
  /** The settlement id; `request-ID` of a request that held no readable payment. */
  readonly id: string;
  /** The payment as the newest request had it; undefined where none held one. */
  readonly request: PaymentRequest | undefined;
  /** The body that it was read of; undefined where that is not kept. */
  readonly body: string | undefined;
  /** In the order in which they were published. */
  readonly entries: readonly Entry[];
  /** How many there were before these, and were too many to be kept. */
  readonly omitted: number;
  /** Grows with every change of any record of the timeline. */
  readonly version: number;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  /** How often each operation was asked for. */
  readonly asked: Readonly<Record<Operation, number>>;
  /** Of a 402: the id of the payment that was made for it. */
  readonly paidBy: string | null;
  /** True if the facilitator was sent an unreadable request while several shop requests were open, this one among them. */
  readonly mayBeAsked: boolean;
};

/** The newest request to the shop for a payment, or else the 402 without one. */
export type SeenAtShop = {
  sent: ShopSent | undefined;
  /** Undefined while it is under way. */
  ended: ShopEnd | undefined;
  /** True if the facilitator got a request about the payment, or an unreadable one, since the shop had it. */
  isAsked: boolean;
};

/** How the payment went at the shop; undefined if no proxy saw it there. */
export function seenAtShop({ entries }: PaymentRecord): SeenAtShop | undefined {
  const sent = entries.findLast((entry): entry is ShopSent => entry.kind === "shop" && entry.step === "sent");
  const ended = entries.findLast(
    (entry): entry is ShopEnd =>
      entry.kind === "shop" && entry.step === "ended" && (!sent || entry.requestId === sent.requestId),
  );
  if (sent === undefined) return ended && { sent, ended, isAsked: false };
  const since = entries.slice(entries.indexOf(sent));
  return { sent, ended, isAsked: since.some(({ kind }) => asks.has(kind)) };
}

const asks: ReadonlySet<Entry["kind"]> = new Set(["request", "answer", "unrouted"]);

/** The request that an entry belongs to, where that is known. */
export function requestIdOf(entry: Entry): string | null {
  return "requestId" in entry ? entry.requestId : null;
}

/** The body of the newest request in which no payment could be read. */
export function receivedIn({ entries }: PaymentRecord): ReceivedBody | undefined {
  const answer = entries.findLast((entry) => entry.kind === "answer" && entry.received !== undefined);
  return answer?.kind === "answer" ? answer.received : undefined;
}

/** How often a payment was judged, and by what, is asked of its newest settle, or else verify. */
type Judged = {
  operation: Operation;
  /** When it was asked for. */
  request: RequestEntry | undefined;
  /** The last checks that were made for it. */
  checks: ChecksEntry | undefined;
};

/** The newest settle of a payment, or else the newest verify. */
export function newestJudged({ entries, asked }: PaymentRecord): Judged {
  const operation = asked.settle > 0 ? "settle" : "verify";
  const request = entries.findLast(
    (entry): entry is RequestEntry => entry.kind === "request" && entry.operation === operation,
  );
  const checks = entries.findLast(
    (entry): entry is ChecksEntry => entry.kind === "checks" && entry.requestId === request?.requestId,
  );
  return { operation, request, checks };
}

/** The chain's time, unix seconds, when {@link newestJudged} was judged; undefined where it is not known. */
export function chainTimeOf(record: PaymentRecord): bigint | undefined {
  const { request, checks } = newestJudged(record);
  const clock = record.entries.findLast(
    (entry): entry is ClockEntry => entry.kind === "clock" && entry.requestId === request?.requestId,
  );
  return clock?.timestamp ?? checks?.block?.timestamp;
}

/** A record that may have a searchable payment. */
type Searchable = { readonly request: PaymentRequest | undefined };

/** This many digits of a signature distinguish it from others; a shorter one, which is malformed, does not. */
const digitsSearched = 64;

/**
 * Returns true if JSON-RPC parameters, as JSON in lower case, are about a payment: its nonce is 32 random bytes and stands in every
 * simulation and every transaction of it, and its signature in what wallets are asked.
 */
export function isAbout({ request }: Searchable, text: string): boolean {
  if (request === undefined) return false;
  const { nonce, signature } = request.payment;
  return [nonce.slice(2), signature.slice(2, 2 + digitsSearched)].some(
    (digits) => digits.length === digitsSearched && text.includes(digits.toLowerCase()),
  );
}

/**
 * Which payments a fault of a connection hit, of those that it may have been: those that a call {@link isAbout}, or whose
 * transaction it names by its hash. A call that names none, as for the newest block, counts for all that its HTTP request
 * asks for; a balance, for those of its payer.
 *
 * @param carriedBy the payments that a transaction carries
 */
export function paymentsHitBy<P extends Searchable>(
  { calls }: FaultHit,
  candidates: readonly P[],
  carriedBy: (transaction: string) => readonly P[],
): ReadonlySet<P> {
  const named = calls.map(({ params, isHit }) => {
    const text = JSON.stringify(params).toLowerCase();
    const [first] = params;
    const byHash = typeof first === "string" ? carriedBy(first.toLowerCase()) : [];
    return { text, isHit, payments: [...byHash, ...candidates.filter((payment) => isAbout(payment, text))] };
  });
  const ofRequest = named.flatMap(({ payments }) => payments);
  return new Set(
    named.flatMap(({ text, isHit, payments }) => {
      if (!isHit || payments.length > 0) return isHit ? payments : [];
      const ofPayer = ofRequest.filter(
        ({ request }) => request && text.includes(request.payment.payer.slice(2).toLowerCase()),
      );
      return ofPayer.length > 0 ? ofPayer : ofRequest;
    }),
  );
}

/** How much a timeline keeps at most; of what exceeds it, the oldest is forgotten. */
export type TimelineBounds = {
  /** As many payments, and half as many requests that held none. */
  readonly payments: number;
  /** Of memory, about, for the payments; a quarter of that for the other requests. */
  readonly bytes: number;
  /** Of one payment. */
  readonly entries: number;
};

/** A request that has no answer yet. */
type OpenRequest = { readonly requestId: string; readonly payment: PaymentRequest };

const noneOpen: readonly OpenRequest[] = [];

/** A longer body would take more memory than the payment in it. */
const mostBody = 4_096;

/** The size of a record with its payment, and of an entry, without their texts. */
const recordBytes = 2_000;
const entryBytes = 150;

/** A record as the timeline writes it. */
export class WritableRecord implements PaymentRecord {
  readonly id: string;
  request: PaymentRequest | undefined;
  body: string | undefined;
  entries: Entry[] = [];
  omitted = 0;
  version = 0;
  firstSeenAt = 0;
  lastSeenAt = 0;
  readonly asked = { verify: 0, settle: 0 };
  paidBy: string | null = null;
  mayBeAsked = false;
  /** Requests that have no answer yet, in their order. */
  open = noneOpen;
  /** The hashes of the transactions that carry it, and the places of their txNonces. */
  carriers: readonly string[] = [];
  /** About the memory that it takes, and as much of that as is counted by the map that it is in. */
  bytes = recordBytes;
  counted = 0;
  #bodyBytes = 0;

  constructor(id: string) {
    this.id = id;
  }

  /** Notes a request. Another one of the same payment may have other requirements, or another signature. */
  ask(payment: PaymentRequest, body: string | undefined): void {
    this.request = payment;
    const bodyBytes = body?.length ?? 0;
    this.body = bodyBytes <= mostBody ? body : undefined;
    // The payment of a long body is long, too.
    this.bytes += bodyBytes - this.#bodyBytes;
    this.#bodyBytes = bodyBytes;
  }

  begin(request: OpenRequest): void {
    this.open = [...this.open, request];
  }

  /** The request under way of which this is the payment, by identity. */
  openFor(payment: PaymentRequest): string | undefined {
    return this.open.find((request) => request.payment === payment)?.requestId;
  }

  /** Returns true if it was under way. */
  end(requestId: string): boolean {
    const others = this.open.filter((request) => request.requestId !== requestId);
    const wasOpen = others.length < this.open.length;
    if (wasOpen) this.open = others.length === 0 ? noneOpen : others;
    return wasOpen;
  }

  /** The only request under way; null where there is none, or more than one. */
  onlyOpen(): string | null {
    const [only, ...others] = this.open;
    return only !== undefined && others.length === 0 ? only.requestId : null;
  }

  add(entry: Entry, most: number): void {
    if (this.entries.length >= most) this.#forgetHalf();
    if (this.entries.length === 0) this.firstSeenAt = entry.at;
    this.entries.push(entry);
    this.lastSeenAt = entry.at;
    this.bytes += sizeOf(entry);
  }

  /** The outcome of the payment stays. */
  #forgetHalf(): void {
    const half = Math.ceil(this.entries.length / 2);
    const old = this.entries.slice(0, half).filter(isOutcome);
    this.entries = [...old, ...this.entries.slice(half)];
    this.omitted += half - old.length;
    this.bytes = this.entries.reduce((sum, entry) => sum + sizeOf(entry), recordBytes + this.#bodyBytes);
  }
}

function isOutcome(entry: Entry): boolean {
  return entry.kind === "settlement" && ["settled", "failed", "recovered"].includes(entry.step);
}

/** About the memory that an entry takes. */
function sizeOf(entry: Entry): number {
  if (entry.kind === "shop") {
    const { value = "" } = entry.step === "sent" ? entry.payment : {};
    const { body = "", headers = {} } = (entry.step === "ended" && entry.answer) || {};
    return entryBytes + value.length + body.length + Object.values(headers).join().length;
  }
  if (entry.kind !== "answer") return entryBytes;
  const { answer = "", received, result } = entry;
  return entryBytes + answer.length + 2 * (received?.text.length ?? 0) + (result.message?.length ?? 0);
}

/** Records by their ids, the one that was renewed longest ago first; up to a number, and a size. */
export class RecordMap {
  readonly #records = new Map<string, WritableRecord>();
  readonly #bounds: TimelineBounds;
  readonly #forgotten: (record: WritableRecord) => void;
  #bytes = 0;

  /** @param forgotten is called with each that is forgotten */
  constructor(bounds: TimelineBounds, forgotten: (record: WritableRecord) => void) {
    this.#bounds = bounds;
    this.#forgotten = forgotten;
  }

  get(id: string): WritableRecord | undefined {
    return this.#records.get(id);
  }

  /** The record with this id, which is the newest from now on. */
  renew(id: string): WritableRecord {
    const known = this.#records.get(id);
    if (known !== undefined) this.#records.delete(id);
    const record = known ?? new WritableRecord(id);
    this.#records.set(id, record);
    return record;
  }

  /** Counts what a record takes now, and forgets the oldest where there is too much. */
  count(record: WritableRecord): void {
    this.#bytes += record.bytes - record.counted;
    record.counted = record.bytes;
    const { payments, bytes } = this.#bounds;
    if (this.#records.size > payments || this.#bytes > bytes) this.#forgetOldest();
  }

  /** A twentieth at once: a map whose first entries were removed one by one takes long to find its first. */
  #forgetOldest(): void {
    const payments = 0.95 * this.#bounds.payments;
    const bytes = 0.95 * this.#bounds.bytes;
    for (const record of this.#records.values()) {
      const isEnough = this.#records.size <= payments && this.#bytes <= bytes;
      if (isEnough || this.#records.size === 1) return;
      this.#records.delete(record.id);
      this.#bytes -= record.counted;
      this.#forgotten(record);
    }
  }

  values(): Iterable<WritableRecord> {
    return this.#records.values();
  }

  clear(): void {
    this.#records.clear();
    this.#bytes = 0;
  }
}
