import type { PaymentRequest } from "../../protocol/requests.ts";
import type { RequestRead } from "../channels/channels.ts";
import type { Entry, PaymentRecord } from "./record.ts";

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

/** What a record and the payment in it take, and what an entry does, besides their texts. */
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
  ask({ payment, body }: Pick<RequestRead, "payment" | "body">): void {
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

  /** Whether it was under way. */
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

  /** What became of the payment stays. */
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
  if (entry.kind !== "answer") return entryBytes;
  const { answer = "", received, result } = entry;
  return entryBytes + answer.length + 2 * (received?.text.length ?? 0) + (result.message?.length ?? 0);
}

/** Records by their ids, the one that was renewed longest ago first; up to a number, and a size. */
export class RecordMap {
  readonly #records = new Map<string, WritableRecord>();
  readonly #bounds: Pick<TimelineBounds, "payments" | "bytes">;
  readonly #forgotten: (record: WritableRecord) => void;
  #bytes = 0;

  /** @param forgotten is called with each that is forgotten */
  constructor(
    bounds: Pick<TimelineBounds, "payments" | "bytes">,
    forgotten: (record: WritableRecord) => void,
  ) {
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
