import type { ChecksBegun, RequestEnded, RequestRead, RpcRequested } from "../channels/channels.ts";
import type { Hex } from "../protocol/hex.ts";
import type { Network } from "../protocol/networks.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { packRequest, unpackRequest } from "./pack-request.ts";
import type { PaymentMessage, TimedMessages } from "./payment-message.ts";
import {
  countMessages,
  type EndedRequest,
  endedMessages,
  endRequest,
  type NodeCall,
  type OpenRequest,
  openMessages,
} from "./stored-request.ts";

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

/** Messages as they are. */
type Unsorted = {
  /** The requests among them that have not ended. */
  readonly open: Pick<RequestRead, "requestId" | "payment">[];
  readonly messages: PaymentMessage[];
  readonly times: number[];
};

const noCalls: readonly NodeCall[] = [];

/**
 * A payment in a store. What was published about a request is one object until it ends, and few from then on: see
 * `stored-request`. As soon as something else is published, or two requests are open, messages are kept as they are.
 */
export class KeptPayment implements StoredPayment {
  readonly id: string;
  omitted = 0;
  readonly #settlementId: Hex | undefined;
  readonly #knownNetwork: Network | undefined;
  readonly #request: string | undefined;
  /** The newest that has ended; the others follow from it. */
  #ended: EndedRequest | undefined;
  /** How many messages were published about them. */
  #endedMessages = 0;
  #open: OpenRequest | undefined;
  #unsorted: Unsorted | undefined;

  constructor(id: string, request: PaymentRequest | undefined) {
    this.id = id;
    this.#settlementId = request?.settlementId;
    this.#knownNetwork = request?.knownNetwork;
    this.#request = request && packRequest(request);
  }

  get request(): PaymentRequest | undefined {
    const settlementId = this.#settlementId;
    const knownNetwork = this.#knownNetwork;
    if (this.#request === undefined || settlementId === undefined || knownNetwork === undefined)
      return undefined;
    return unpackRequest(this.#request, { settlementId, knownNetwork });
  }

  get messages(): readonly PaymentMessage[] {
    return this.after(0).messages;
  }

  get times(): readonly number[] {
    return this.after(0).times;
  }

  get kept(): number {
    const open = this.#open === undefined ? 0 : countMessages(this.#open);
    return this.#endedMessages + open + (this.#unsorted?.messages.length ?? 0);
  }

  get published(): number {
    return this.omitted + this.kept;
  }

  after(published: number): TimedMessages {
    const id = this.#settlementId;
    const parts: TimedMessages[] = [];
    let missing = this.published - Math.max(published, this.omitted);
    const take = ({ messages, times }: TimedMessages) => {
      if (missing > 0) parts.unshift({ messages: messages.slice(-missing), times: times.slice(-missing) });
      missing -= messages.length;
    };
    if (this.#unsorted !== undefined) take(this.#unsorted);
    if (id !== undefined) {
      if (this.#open !== undefined) take(openMessages(id, this.#open));
      for (let ended = this.#ended; ended !== undefined && missing > 0; ended = ended.before) {
        take(endedMessages(id, ended));
      }
    }
    return {
      messages: parts.flatMap(({ messages }) => messages),
      times: parts.flatMap(({ times }) => times),
    };
  }

  /** A request of it was read. */
  open({ requestId, operation, payment }: RequestRead, at: number): void {
    if (this.#open === undefined && this.#unsorted === undefined && this.#settlementId !== undefined) {
      this.#open = { requestId, operation, payment, at, checks: undefined, calls: noCalls };
      return;
    }
    this.#unsort().open.push({ requestId, payment });
    this.keep({ requestId, operation }, at);
  }

  /** The first check of a request was made; that may have come another way than by HTTP. */
  check({ payment, checks, times }: ChecksBegun, at: number): void {
    const request = this.#open;
    if (request?.payment === payment && request.checks === undefined) {
      request.checks = { checks, times };
      return;
    }
    const { open } = this.#unsort();
    const requestId = open.findLast((each) => each.payment === payment)?.requestId ?? null;
    this.keep({ requestId, checks, times }, at);
  }

  /** A node was asked about it. `calls` is that as a list, which all payments that it was asked about so share. */
  call(message: RpcRequested, calls: readonly [NodeCall]): void {
    const request = this.#open;
    if (request === undefined) this.keep(message, calls[0].at);
    else request.calls = request.calls.length === 0 ? calls : [...request.calls, ...calls];
  }

  /** A request of it has ended. */
  end({ requestId, operation, status, answer, result, tookMs, received }: RequestEnded, at: number): void {
    const request = this.#open;
    // Of one whose caller has left, checks may still be made.
    if (request?.requestId === requestId && status !== undefined) {
      this.#endedMessages += countMessages(request) + 1;
      this.#ended = endRequest(request, { status, answer, result, tookMs, at }, this.#ended);
      this.#open = undefined;
      return;
    }
    const { open } = this.#unsort();
    const index = open.findIndex((each) => each.requestId === requestId);
    if (index >= 0) open.splice(index, 1);
    const ended = { requestId, operation, status, answer, result, tookMs };
    this.keep(received === undefined ? ended : { ...ended, received }, at);
  }

  /** Keeps a message as it is. */
  keep(message: PaymentMessage, at: number): void {
    const { messages, times } = this.#unsort();
    messages.push(message);
    times.push(at);
  }

  /** Forgets the first messages, at least so many where there are. Gives how many. */
  forget(count: number): number {
    const before = this.kept;
    this.#keepEnded(Math.max(0, this.#endedMessages - count));
    const more = count - (before - this.kept);
    if (more > 0) {
      this.#unsorted?.messages.splice(0, more);
      this.#unsorted?.times.splice(0, more);
    }
    const forgotten = before - this.kept;
    this.omitted += forgotten;
    return forgotten;
  }

  /** Keeps the newest requests that have ended, up to so many messages about them. */
  #keepEnded(most: number): void {
    let kept = 0;
    let oldest: EndedRequest | undefined;
    for (let next = this.#ended; next !== undefined; next = next.before) {
      const messages = countMessages(next) + 1;
      if (kept + messages > most) break;
      kept += messages;
      oldest = next;
    }
    if (oldest === undefined) this.#ended = undefined;
    else oldest.before = undefined;
    this.#endedMessages = kept;
  }

  #unsort(): Unsorted {
    const request = this.#open;
    this.#unsorted ??= { open: [], messages: [], times: [] };
    if (request !== undefined && this.#settlementId !== undefined) {
      const { messages, times } = openMessages(this.#settlementId, request);
      this.#unsorted.open.push(request);
      this.#unsorted.messages.push(...messages);
      this.#unsorted.times.push(...times);
      this.#open = undefined;
    }
    return this.#unsorted;
  }
}
