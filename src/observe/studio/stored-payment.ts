import { methods, parsePaymentRequest } from "../../methods/methods.ts";
import type { Hex } from "../../protocol/hex.ts";
import { createNetworkRegistry, type Network } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { parseJson } from "../../util/json.ts";
import type { ChecksBegun, RequestEnded, RequestRead } from "../channels/channels.ts";
import type { PaymentMessage, TimedMessages } from "./payment-message.ts";
import type { KeptTransaction } from "./stored-messages.ts";
import {
  countMessages,
  type EndedRequest,
  endedAt,
  endedMessages,
  endRequest,
  type OpenRequest,
  openMessages,
  type TimedCall,
  type TimedMessage,
} from "./stored-messages.ts";

/** All that was published about a payment. What is read of it may be made anew each time: readers keep it. */
export type StoredPayment = TimedMessages & {
  /** The settlement id; `request-ID` of a request that is no readable payment. */
  readonly id: string;
  /** Undefined where no request held a readable payment. */
  readonly settlementId: Hex | undefined;
  /** The payment of the newest such request, as it is read again, which takes some time. */
  readonly request: PaymentRequest | undefined;
  /** The body that it is read of; undefined where that is not kept. */
  readonly body: string | undefined;
  /** How many messages there were before these, and were too many to be kept. */
  readonly omitted: number;
  /** When the newest message was published. */
  readonly changedAt: number;
  /** The messages that were published after a time. */
  after(at: number): TimedMessages;
};

/** A longer body would take more memory than the payment in it. */
const mostBody = 4_096;

type OtherMessage = TimedMessage & { before: OtherMessage | undefined };

const noCalls: readonly TimedCall[] = [];
const noTransactions: readonly KeptTransaction[] = [];

/**
 * A payment in a store. What was published about a request is one object until it ends, and few from then on, see
 * `stored-messages`; what was published about a transaction is kept with that, for all payments that it carries.
 */
export class KeptPayment implements StoredPayment {
  readonly id: string;
  readonly settlementId: Hex | undefined;
  transactions = noTransactions;
  /** How many messages are kept, besides those about transactions. */
  kept = 0;
  /** Its place among recent payments. */
  position = -1;
  readonly #network: Network | undefined;
  /** The body that the payment was read of: one string, where the payment has fifteen objects. */
  #body: string | undefined;
  /** The payment, where it cannot be read of that again. */
  #request: PaymentRequest | undefined;
  #changedAt = 0;
  #omitted = 0;
  /** The newest that has ended; the others follow from it. */
  #ended: EndedRequest | undefined;
  /** The newest that is open; the others follow from it. */
  #open: OpenRequest | undefined;
  /** The newest of all other messages. */
  #other: OtherMessage | undefined;

  /** @param read the first request of the payment; undefined where it was not readable */
  constructor(id: string, read: Pick<RequestRead, "payment" | "body"> | undefined) {
    this.id = id;
    this.settlementId = read?.payment.settlementId;
    this.#network = read?.payment.knownNetwork;
    if (read !== undefined) this.take(read);
  }

  /** Keeps what a request said. Another one of the same payment may have other requirements, or another signature. */
  take({ payment, body }: Pick<RequestRead, "payment" | "body">): void {
    // One that begins with a byte order mark was read without it.
    const isKept = body !== undefined && body.length <= mostBody && body.startsWith("{");
    // A service may take ways to pay that are not known here.
    const isReadAgain = isKept && methods.some(({ name }) => name === payment.payment.method);
    this.#body = isKept ? body : undefined;
    this.#request = isReadAgain ? undefined : payment;
  }

  get body(): string | undefined {
    return this.#body;
  }

  get request(): PaymentRequest | undefined {
    const network = this.#network;
    if (this.#request !== undefined || this.#body === undefined || network === undefined)
      return this.#request;
    const parsed = parsePaymentRequest(parseJson(this.#body), createNetworkRegistry([network]));
    return parsed.ok ? parsed.request : undefined;
  }

  get messages(): readonly PaymentMessage[] {
    return this.after(-1).messages;
  }

  get times(): readonly number[] {
    return this.after(-1).times;
  }

  get omitted(): number {
    return this.transactions.reduce((sum, { omitted }) => sum + omitted, this.#omitted);
  }

  get changedAt(): number {
    // Readers ask this of every payment.
    if (this.transactions.length === 0) return this.#changedAt;
    return Math.max(this.#changedAt, ...this.transactions.map(({ changedAt }) => changedAt));
  }

  after(at: number): TimedMessages {
    const told = [
      ...fromOldest(this.#ended).flatMap((ended) => (endedAt(ended) > at ? endedMessages(ended) : [])),
      ...fromOldest(this.#open).flatMap(openMessages),
      ...fromOldest(this.#other),
      ...this.transactions.flatMap((transaction) => transaction.told()),
    ]
      .filter((each) => each.at > at)
      .sort((a, b) => a.at - b.at);
    return { messages: told.map(({ message }) => message), times: told.map((each) => each.at) };
  }

  /** A request of it was read. */
  open({ requestId, operation, payment }: RequestRead, at: number): void {
    this.#count(at);
    this.#open = { requestId, operation, payment, at, checks: undefined, calls: noCalls, before: this.#open };
  }

  /** The first check of a request was made; that may have come another way than by HTTP. */
  check(message: ChecksBegun, at: number): void {
    const { payment, checks, times } = message;
    for (let open = this.#open; open !== undefined; open = open.before) {
      if (open.payment !== payment || open.checks !== undefined) continue;
      this.#count(at);
      open.checks = message;
      return;
    }
    this.keep({ requestId: null, checks, times }, at);
  }

  /** A node was asked about it. `calls` is a list of one call, which all payments that it was made for share. */
  call(calls: readonly [TimedCall]): void {
    const open = this.#open;
    if (open === undefined || open.before !== undefined) {
      this.keep(calls[0], calls[0].at);
      return;
    }
    this.#count(calls[0].at);
    open.calls = open.calls.length === 0 ? calls : [...open.calls, ...calls];
  }

  /** A request of it has ended. */
  end({ requestId, operation, status, answer, result, tookMs, received }: RequestEnded, at: number): void {
    const request = this.#close(requestId);
    if (request !== undefined && status !== undefined) {
      this.#count(at);
      this.#ended = endRequest(request, { status, answer, result, tookMs, at }, this.#ended);
      return;
    }
    // Of one whose caller has left, checks may still be made, in the list of its message.
    for (const told of request === undefined ? [] : openMessages(request)) this.#add(told);
    const ended = { requestId, operation, status, answer, result, tookMs };
    this.keep(received === undefined ? ended : { ...ended, received }, at);
  }

  /** A transaction carries it, or another one than before. */
  carry(transaction: KeptTransaction): void {
    this.transactions = [...this.transactions, transaction];
  }

  /** Keeps another message. */
  keep(message: PaymentMessage, at: number): void {
    this.#count(at);
    this.#add({ message, at });
  }

  /** Forgets so many messages or some more, of requests that have ended before others. Gives how many. */
  forget(count: number): number {
    const requests = forgetOldest(this.#ended, count, countMessages);
    const others = forgetOldest(this.#other, count - requests.forgotten, () => 1);
    this.#ended = requests.newest;
    this.#other = others.newest;
    const forgotten = requests.forgotten + others.forgotten;
    this.kept -= forgotten;
    this.#omitted += forgotten;
    return forgotten;
  }

  #count(at: number): void {
    this.kept++;
    this.#changedAt = at;
  }

  #add({ message, at }: TimedMessage): void {
    this.#other = { message, at, before: this.#other };
  }

  /** Takes a request from those that are open. */
  #close(requestId: string): OpenRequest | undefined {
    let previous: OpenRequest | undefined;
    for (let open = this.#open; open !== undefined; previous = open, open = open.before) {
      if (open.requestId !== requestId) continue;
      if (previous === undefined) this.#open = open.before;
      else previous.before = open.before;
      return open;
    }
    return undefined;
  }
}

/** An entry of a list that is linked from the newest to the oldest: adding to it moves nothing. */
type Linked<T> = { before: T | undefined };

/** The entries of a list, from the oldest to the newest. */
function fromOldest<T extends Linked<T>>(newest: T | undefined): T[] {
  const entries: T[] = [];
  for (let entry = newest; entry !== undefined; entry = entry.before) entries.push(entry);
  return entries.reverse();
}

/**
 * Cuts off the oldest entries that hold so many messages, or some more.
 *
 * @returns the newest that is left, and how many messages the others held
 */
function forgetOldest<T extends Linked<T>>(
  newest: T | undefined,
  count: number,
  messagesOf: (entry: T) => number,
): { newest: T | undefined; forgotten: number } {
  const entries = fromOldest(newest);
  let forgotten = 0;
  let first = 0;
  for (const entry of entries) {
    if (forgotten >= count) break;
    forgotten += messagesOf(entry);
    first++;
  }
  const oldest = entries[first];
  if (oldest === undefined) return { newest: undefined, forgotten };
  oldest.before = undefined;
  return { newest, forgotten };
}
