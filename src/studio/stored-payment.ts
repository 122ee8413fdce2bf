import type { RequestRead } from "../channels/channels.ts";
import type { Hex } from "../protocol/hex.ts";
import type { Network } from "../protocol/networks.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { countPacked, packMessages, packRequest, unpackMessages, unpackRequest } from "./pack-payment.ts";
import type { PaymentMessage, TimedMessages } from "./payment-message.ts";

/** All that was published about a payment. What is read of it may be made anew each time: readers keep it. */
export type StoredPayment = TimedMessages & {
  /** The settlement id; `request-ID` of a request that is no readable payment. */
  readonly id: string;
  /** Undefined where no request held a readable payment. */
  readonly request: PaymentRequest | undefined;
  /** How many messages there were before these, and were too many to be kept. */
  readonly omitted: number;
  /** How many there were, with those that are not kept. */
  readonly published: number;
  /** Of the messages that are kept, those after the first so many that there were. */
  after(published: number): TimedMessages;
};

/** A request that has not ended. Checks name it by the payment, of which every request has one. */
type OpenRequest = Pick<RequestRead, "requestId" | "payment">;

/** What is not packed yet, since there is more to come. */
type Unpacked = {
  readonly open: OpenRequest[];
  readonly messages: PaymentMessage[];
  readonly times: number[];
};

/** A payment in a store. When its requests have ended, it is a few texts: see `pack-payment`. */
export class KeptPayment implements StoredPayment {
  readonly id: string;
  omitted = 0;
  #request: PaymentRequest | string | undefined;
  readonly #settlementId: Hex | undefined;
  readonly #knownNetwork: Network | undefined;
  #unpacked: Unpacked | undefined;
  #texts: string[] | undefined;
  /** How many messages the texts hold. */
  #packed = 0;

  constructor(id: string, request: PaymentRequest | undefined) {
    this.id = id;
    this.#request = request;
    this.#settlementId = request?.settlementId;
    this.#knownNetwork = request?.knownNetwork;
  }

  get request(): PaymentRequest | undefined {
    const request = this.#request;
    const settlementId = this.#settlementId;
    const knownNetwork = this.#knownNetwork;
    if (typeof request !== "string") return request;
    return settlementId && knownNetwork && unpackRequest(request, { settlementId, knownNetwork });
  }

  get messages(): readonly PaymentMessage[] {
    return this.after(0).messages;
  }

  get times(): readonly number[] {
    return this.after(0).times;
  }

  get kept(): number {
    return this.#packed + (this.#unpacked?.messages.length ?? 0);
  }

  get published(): number {
    return this.omitted + this.kept;
  }

  after(published: number): TimedMessages {
    const id = this.#settlementId;
    let skipped = published - this.omitted;
    const parts: TimedMessages[] = [];
    for (const text of this.#texts ?? []) {
      const count = countPacked(text);
      if (skipped < count && id !== undefined) parts.push(cut(unpackMessages(id, text), skipped));
      skipped -= count;
    }
    if (this.#unpacked !== undefined) parts.push(cut(this.#unpacked, skipped));
    const [only, ...others] = parts;
    if (only !== undefined && others.length === 0) return only;
    return {
      messages: parts.flatMap(({ messages }) => messages),
      times: parts.flatMap(({ times }) => times),
    };
  }

  /** Adds a message. */
  keep(message: PaymentMessage, at: number): void {
    const { messages, times } = this.#unpack();
    messages.push(message);
    times.push(at);
  }

  /** A request of it was read. */
  open(request: OpenRequest): void {
    this.#unpack().open.push(request);
  }

  /** The request that is open with this very object. */
  findOpen(payment: PaymentRequest): OpenRequest | undefined {
    return this.#unpacked?.open.findLast((request) => request.payment === payment);
  }

  /** A request of it has ended, and that was kept. */
  close(requestId: string): void {
    const id = this.#settlementId;
    const unpacked = this.#unpacked;
    if (unpacked === undefined) return;
    const { open } = unpacked;
    const index = open.findIndex((request) => request.requestId === requestId);
    if (index >= 0) open.splice(index, 1);
    if (open.length > 0 || this.#request === undefined || id === undefined) return;
    if (typeof this.#request !== "string") this.#request = packRequest(this.#request);
    const text = packMessages(id, unpacked);
    if (text === undefined) return;
    if (this.#texts === undefined) this.#texts = [text];
    else this.#texts.push(text);
    this.#packed += unpacked.messages.length;
    this.#unpacked = undefined;
  }

  /** Forgets the first messages, at least so many where there are. Gives how many. */
  forget(count: number): number {
    const before = this.kept;
    const texts = this.#texts ?? [];
    let whole = 0;
    for (const text of texts) {
      if (before - this.kept >= count) break;
      this.#packed -= countPacked(text);
      whole++;
    }
    texts.splice(0, whole);
    const more = count - (before - this.kept);
    if (more > 0) {
      this.#unpacked?.messages.splice(0, more);
      this.#unpacked?.times.splice(0, more);
    }
    const forgotten = before - this.kept;
    this.omitted += forgotten;
    return forgotten;
  }

  #unpack(): Unpacked {
    this.#unpacked ??= { open: [], messages: [], times: [] };
    return this.#unpacked;
  }
}

/** Without the first so many. */
function cut({ messages, times }: TimedMessages, skipped: number): TimedMessages {
  if (skipped <= 0) return { messages, times };
  return { messages: messages.slice(skipped), times: times.slice(skipped) };
}
