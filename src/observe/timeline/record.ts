import type { Hex } from "../../protocol/hex.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { FaultHit, Message, ReceivedBody } from "../channels/channels.ts";

/** A message as records keep it, without the payment that the record already has. Only shop entries contain signatures. */
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
  /** The request they were made for; null if no published request is open. */
  readonly requestId: string | null;
  /** The newest block that the service had seen on the payment's network. */
  readonly block: Message<"block"> | undefined;
};

export type AnswerEntry = Omit<Message<"answer">, "serviceId" | "payment" | "settlementId" | "body">;

/** Calls in one HTTP request to a node that were made for the payment or for a transaction that carries it. */
export type RpcEntry = Omit<Message<"rpc">, "serviceId" | "about"> & {
  /** The settlement id, or the transaction's hash. */
  readonly subject: Hex;
  /** The number of payments and transactions that shared the HTTP request. */
  readonly subjects: number;
  /** The payment's open request, if there is exactly one; otherwise null. */
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

/** Everything published about one payment. Times are Unix milliseconds. */
export type PaymentRecord = {
  /** The settlement id, or `request-ID` for a request without a readable payment. */
  readonly id: string;
  /** The payment in the newest request; undefined if none had a readable one. */
  readonly request: PaymentRequest | undefined;
  /** The body that it was read from; undefined if it was not kept. */
  readonly body: string | undefined;
  /** In the order of publication. */
  readonly entries: readonly Entry[];
  /** The number of older entries that were dropped. */
  readonly omitted: number;
  /** Grows with every change to any record in the timeline. */
  readonly version: number;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  /** The number of requests for each operation. */
  readonly asked: Readonly<Record<Operation, number>>;
  /** For a 402, the id of the payment that was made for it. */
  readonly paidBy: string | null;
  /** True if the facilitator got an unreadable request while several shop requests, including this one, were open. */
  readonly mayBeAsked: boolean;
};

/** The newest request to the shop for a payment, or the 402 if none carried a payment. */
export type SeenAtShop = {
  sent: ShopSent | undefined;
  /** Undefined while the request is in progress. */
  ended: ShopEnd | undefined;
  /** True if the facilitator got a request about the payment, or an unreadable one, after the shop had the payment. */
  isAsked: boolean;
};

/** The payment's history at the shop; undefined if no proxy saw it there. */
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

/** The request that an entry belongs to, if known. */
export function requestIdOf(entry: Entry): string | null {
  return "requestId" in entry ? entry.requestId : null;
}

/** The body of the newest request without a readable payment. */
export function receivedIn({ entries }: PaymentRecord): ReceivedBody | undefined {
  const answer = entries.findLast((entry) => entry.kind === "answer" && entry.received !== undefined);
  return answer?.kind === "answer" ? answer.received : undefined;
}

/** A settle or verify whose checks say how the payment was judged. */
type Judged = {
  operation: Operation;
  /** The entry of the newest such request, if there is one. */
  request: RequestEntry | undefined;
  /** The last checks that were made for it. */
  checks: ChecksEntry | undefined;
};

/** The newest settle of a payment, or its newest verify if there was no settle. */
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

/** The chain's time, in Unix seconds, when {@link newestJudged} was judged; undefined if unknown. */
export function chainTimeOf(record: PaymentRecord): bigint | undefined {
  const { request, checks } = newestJudged(record);
  const clock = record.entries.findLast(
    (entry): entry is ClockEntry => entry.kind === "clock" && entry.requestId === request?.requestId,
  );
  return clock?.timestamp ?? checks?.block?.timestamp;
}

/** A record that may have a payment to search for. */
type Searchable = { readonly request: PaymentRequest | undefined };

/** Enough digits to tell signatures apart; a shorter signature is malformed and never matches. */
const digitsSearched = 64;

/**
 * True if JSON-RPC parameters, as lower-case JSON, concern a payment. Its nonce, 32 random bytes, appears in each of
 * its simulations and transactions, its signature in calls to wallet contracts.
 */
export function isAbout({ request }: Searchable, text: string): boolean {
  if (request === undefined) return false;
  const { nonce, signature } = request.payment;
  return [nonce.slice(2), signature.slice(2, 2 + digitsSearched)].some(
    (digits) => digits.length === digitsSearched && text.includes(digits.toLowerCase()),
  );
}

/**
 * Finds the payments that a connection fault hit: those that a hit call {@link isAbout}, or whose transaction it
 * names by hash. A hit call that names no payment, such as for the newest block, counts for all payments in its HTTP
 * request; if it names a payer, as for a balance, only for that payer's.
 *
 * @param carriedBy returns the payments that a transaction carries
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

/** Limits of a timeline; the oldest records and entries beyond them are dropped. */
export type TimelineBounds = {
  /** The number of payments; half as many requests without one are kept in addition. */
  readonly payments: number;
  /** Approximate memory for the payments; the other requests get a quarter of it in addition. */
  readonly bytes: number;
  /** The number of entries per payment. */
  readonly entries: number;
};

/** A request without a response yet. */
type OpenRequest = { readonly requestId: string; readonly payment: PaymentRequest };

const noneOpen: readonly OpenRequest[] = [];

/** A longer body is not kept: it would take more memory than the payment in it. */
const mostBody = 4_096;

/** Approximate memory for a record with its payment, and for an entry, without their texts. */
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
  /** Requests without a response yet, in order. */
  open = noneOpen;
  /** The hashes of the transactions that carry it, and the keys of their txNonces. */
  carriers: readonly string[] = [];
  /** Its approximate memory, and the part of it that its map has counted. */
  bytes = recordBytes;
  counted = 0;
  #bodyBytes = 0;

  constructor(id: string) {
    this.id = id;
  }

  /** Stores the payment of a request. A repeat may have other requirements or another signature. */
  ask(payment: PaymentRequest, body: string | undefined): void {
    this.request = payment;
    const bodyBytes = body?.length ?? 0;
    this.body = bodyBytes <= mostBody ? body : undefined;
    // The payment read from a long body is long, too.
    this.bytes += bodyBytes - this.#bodyBytes;
    this.#bodyBytes = bodyBytes;
  }

  begin(request: OpenRequest): void {
    this.open = [...this.open, request];
  }

  /** The id of the open request with this very payment object. */
  openFor(payment: PaymentRequest): string | undefined {
    return this.open.find((request) => request.payment === payment)?.requestId;
  }

  /** Returns true if the request was open. */
  end(requestId: string): boolean {
    const others = this.open.filter((request) => request.requestId !== requestId);
    const wasOpen = others.length < this.open.length;
    if (wasOpen) this.open = others.length === 0 ? noneOpen : others;
    return wasOpen;
  }

  /** The id of the only open request; null if there is none, or more than one. */
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

  /** Drops the older half of the entries, except for the outcome of the payment. */
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

/** The approximate memory of an entry. */
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

/** Records by id, least recently renewed first; limited in number and memory. */
export class RecordMap {
  readonly #records = new Map<string, WritableRecord>();
  readonly #bounds: TimelineBounds;
  readonly #forgotten: (record: WritableRecord) => void;
  #bytes = 0;

  /** @param forgotten called with each record that is dropped */
  constructor(bounds: TimelineBounds, forgotten: (record: WritableRecord) => void) {
    this.#bounds = bounds;
    this.#forgotten = forgotten;
  }

  get(id: string): WritableRecord | undefined {
    return this.#records.get(id);
  }

  /** Returns the record with this id, creating it if needed, and makes it the newest. */
  renew(id: string): WritableRecord {
    const known = this.#records.get(id);
    if (known !== undefined) this.#records.delete(id);
    const record = known ?? new WritableRecord(id);
    this.#records.set(id, record);
    return record;
  }

  /** Updates the memory counted for a record, and drops the oldest records if a limit is exceeded. */
  count(record: WritableRecord): void {
    this.#bytes += record.bytes - record.counted;
    record.counted = record.bytes;
    const { payments, bytes } = this.#bounds;
    if (this.#records.size > payments || this.#bytes > bytes) this.#forgetOldest();
  }

  /** Drops a twentieth at once: in a map that loses its first entries one by one, finding the first gets slow. */
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
