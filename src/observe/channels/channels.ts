import { channel as nodeChannel } from "node:diagnostics_channel";
import type { Invalid, Situation } from "../../protocol/catalogue.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { Warning } from "../../protocol/strictness.ts";
import { maskSecrets, showValue } from "../../util/text.ts";

/** The service that a message comes from; one process may run several. */
export type FromService = { readonly serviceId: string };

/** The trace headers of a request, unchecked; see W3C Trace Context. */
export type TraceHeaders = {
  readonly traceparent?: string | string[] | undefined;
  readonly tracestate?: string | string[] | undefined;
};

/** A verify or settle whose body is a well-formed payment, before any check of the payment. */
export type RequestRead = FromService & {
  /** The request id used in responses and logs. */
  readonly requestId: string;
  /** Undefined if the request did not come over the service's own HTTP. */
  readonly headers?: TraceHeaders | undefined;
  readonly operation: Operation;
  readonly settlementId: Hex;
  readonly payment: PaymentRequest;
  /** The JSON that the payment was read from; undefined if it did not come as JSON. */
  readonly body?: string | undefined;
};

/** One check of a payment. */
export type CheckMade = {
  /** One of `checkNames`. */
  readonly check: string;
  /** Undefined if it passed. */
  readonly refusal: Invalid | undefined;
};

/** Consecutive checks of one request, in order, with nothing awaited in between. */
export type ChecksMade = FromService & {
  readonly settlementId: Hex;
  /** The same object as in {@link RequestRead}; it tells concurrent repeats apart. */
  readonly payment: PaymentRequest;
  readonly checks: readonly CheckMade[];
};

/**
 * How a verify or settle ended.
 * - `valid`, `invalid`, `settled`: decided;
 * - `pending`: signed and sent, but not decided in time;
 * - `refused`: 4xx, the request was refused before any decision about the payment;
 * - `undetermined`: 5xx, no decision could be reached;
 * - `abandoned`: the caller left before the response.
 */
export type PaymentOutcome =
  | "valid"
  | "invalid"
  | "settled"
  | "pending"
  | "refused"
  | "undetermined"
  | "abandoned";

/** The result of a verify or settle, in the terms shared by logs, metrics and channels. */
export type RequestResult = {
  readonly outcome: PaymentOutcome;
  /** An invalid reason or a problem name; undefined if the outcome is good. */
  readonly reason?: string;
  /** The explanation in the response. */
  readonly message?: string;
  /** The situation, more specific than the reason. */
  readonly situation?: Situation | undefined;
  /** The chain's time that the payment's own times were compared with, in Unix seconds. */
  readonly chainTime?: Invalid["chainTime"];
  readonly transaction?: Hex;
  /** The amount taken or moved, in the asset's smallest unit; undefined if the payment itself states it. */
  readonly amount?: string;
  /** Warnings about a good payment. */
  readonly warnings?: readonly Warning[];
};

/** The body of a request that contained no readable payment. */
export type ReceivedBody = {
  /** The first 4,096 characters at most, with possible secrets masked. */
  readonly text: string;
  /** The size of the whole body, as far as it was read. */
  readonly bytes: number;
  /** True if `text` is the whole body. */
  readonly isWhole: boolean;
  readonly contentType: string | undefined;
};

/** A verify or settle that has ended, whether well-formed or not. */
export type RequestEnded = FromService & {
  readonly requestId: string;
  /** As in {@link RequestRead}. */
  readonly headers?: TraceHeaders | undefined;
  readonly operation: Operation;
  /** Undefined if the body is not a well-formed payment. */
  readonly payment: PaymentRequest | undefined;
  readonly settlementId: Hex | undefined;
  /** As in {@link RequestRead}. */
  readonly body?: string | undefined;
  /** Set if the body was not empty but contained no readable payment. */
  readonly received?: ReceivedBody | undefined;
  /** The HTTP status; undefined if the caller left before the whole response was written. */
  readonly status: number | undefined;
  /** The body of the response, which holds no secrets; undefined if there was none or it is not text. */
  readonly answer?: string | undefined;
  readonly result: RequestResult;
  /** Milliseconds from the first byte of the request to the last byte of the response. */
  readonly tookMs: number;
};

/** A request that matched no route: 404, or 405 if only the method was wrong. */
export type RequestUnrouted = FromService & {
  readonly requestId: string;
  readonly method: string;
  /** Without the query; truncated if long. */
  readonly path: string;
  readonly status: 404 | 405;
  /** The explanation in the response. */
  readonly message: string;
};

/** The fate of a response that reports a success: `delivered` if it was written, `lost` if it could not be. */
export type DeliveryFate = "delivered" | "lost";

/** The fate of one success on its way to the caller. */
export type DeliveryEnded = FromService & {
  readonly requestId: string;
  readonly settlementId: Hex;
  readonly fate: DeliveryFate;
};

/** One step of a settlement; when published, it is already durable in the ledger. */
export type SettlementStep = FromService & { readonly settlementId: Hex } & (
    | {
        readonly step: "claimed";
        readonly network: NetworkName;
        readonly organizationId: string;
        /** The payment method, `SignedPayment.method`. */
        readonly method: string;
        /**
         * The amount to settle, in the asset's smallest unit: for an upto payment, the amount in the settle request;
         * for a claim, payout or refund of channels, the amount it is expected to move.
         */
        readonly amount: bigint;
      }
    /** In a block that is not yet deep enough. */
    | { readonly step: "mined"; readonly blockNumber: bigint }
    /** That block was reorganized away. */
    | { readonly step: "reorganized" }
    /** Moved to another transaction, since the previous one did not decide it. */
    | { readonly step: "moved" }
    /** `transaction` is undefined if there was nothing to take. */
    | { readonly step: "settled"; readonly transaction: Hex | undefined }
    | { readonly step: "failed"; readonly transaction: Hex; readonly failure: string }
    /** A direct submission to the token (`directSubmission`) was found; its value waits to be paid out. */
    | { readonly step: "recoveryQueued"; readonly directSubmission: Hex }
    | { readonly step: "recoveryPostponed"; readonly problem: string }
    | { readonly step: "recovered"; readonly transaction: Hex }
    | { readonly step: "delivered" }
  );

/** One step of a transaction of an operator or a recoverer. */
export type TransactionStep = FromService & {
  readonly network: NetworkName;
  readonly transaction: Hex;
} & (
    | {
        /** Signed and stored, but not yet sent. `purpose` is the `kind` of its `Attempt`. */
        readonly step: "signed";
        readonly purpose: "settle" | "noop" | "forward";
        readonly operator: Address;
        readonly txNonce: number;
        /** The settlements it settles or pays out; empty if an earlier transaction with this txNonce listed them. */
        readonly settlementIds: readonly Hex[];
        readonly maxFeePerGas: bigint;
        readonly maxPriorityFeePerGas: bigint;
      }
    /** About to be sent to the RPC; `everywhere` means to all endpoints, because it was sent before. */
    | { readonly step: "broadcast"; readonly everywhere: boolean }
    /** Its receipt was read; this repeats until the block is deep enough. */
    | {
        readonly step: "receipt";
        readonly succeeded: boolean;
        readonly blockNumber: bigint;
        readonly blockHash: Hex;
      }
    /** The ledger has closed its txNonce with this transaction. */
    | { readonly step: "concluded"; readonly blockNumber: bigint }
  );

/** A finished HTTP request to a JSON-RPC endpoint. */
export type RpcRequested = FromService & {
  readonly network: NetworkName;
  /** The endpoint's position in the configuration, from "1". Never its URL, which may hold a key. */
  readonly endpoint: string;
  readonly purpose: "read" | "send" | "probe";
  /** The methods in the batch, in order. */
  readonly methods: readonly string[];
  /** The methods called for a settlement (by its id) or a transaction (by its hash), without calls for no payment. */
  readonly about: ReadonlyMap<Hex, readonly string[]>;
  readonly durationMs: number;
  /** Why the response could not be used; undefined if it was used. A retry is a separate request. */
  readonly error: string | undefined;
};

/** The newest block this service has seen on a network. */
export type BlockSeen = FromService & {
  readonly network: NetworkName;
  readonly number: bigint;
  /** Unix seconds. */
  readonly timestamp: bigint;
};

/** A harness's fault that took effect. */
export type FaultHit = FromService & {
  readonly network: NetworkName;
  readonly faultId: string;
  /** The fault's kind. */
  readonly fault: string;
  /** The JSON-RPC methods it hit; empty when a fault of the chain itself is set. */
  readonly methods: readonly string[];
  /**
   * All calls in the HTTP request it hit, and which of them it made fail. When a fault of the chain itself is set:
   * the transactions it hit, each by its hash.
   */
  readonly calls: readonly { readonly params: readonly unknown[]; readonly isHit: boolean }[];
};

/** The part of a shop's response that concerns a payment: its x402 headers, and some of its body. */
export type ShopAnswer = {
  readonly status: number;
  /** The x402 headers (challenges and receipts), by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** All of a 402 that is not too long; the beginning of other errors, secrets masked. Otherwise empty. */
  readonly body: string;
};

/**
 * A request to the shop behind the recording proxy of `up --shop` that concerns a payment: it has a payment header,
 * or was answered with 402 or not at all. Other headers, such as `authorization` and `cookie`, are never included.
 */
export type ShopExchange = FromService & {
  /** Shared by the request's `sent` and `ended` messages. */
  readonly requestId: string;
  readonly method: string;
  /** The requested URL, without its query. */
  readonly url: string;
  /** The shop's origin. */
  readonly shop: string;
  /** The id of the settlement in its payment header; undefined without a readable payment. */
  readonly settlementId: Hex | undefined;
} & (
    | {
        readonly step: "sent";
        readonly payment: { readonly name: string; readonly value: string };
        /** The 402 that this request pays for, if it came through the same proxy. */
        readonly challenge: Message<"shop"> | undefined;
      }
    | {
        readonly step: "ended";
        /** True if the request had a payment header. */
        readonly isPaid: boolean;
        /**
         * Undefined if there was no response. Published when the response begins, or for an error, once its body has arrived.
         */
        readonly answer: ShopAnswer | undefined;
        /** `left` if the client left before the response; `down` if the shop sent none. */
        readonly fate: "answered" | "left" | "down";
        /** The system's error code for the failed connection to the shop, such as ECONNREFUSED. */
        readonly problem: string | undefined;
        readonly tookMs: number;
      }
  );

/** A payer has announced a withdrawal from a channel (scheme batch-settlement) that was opened here. */
export type WithdrawalSeen = FromService & {
  readonly network: NetworkName;
  /** The channel's id. */
  readonly channel: Hex;
  readonly organizationId: string;
  readonly payer: string;
  /** In the token's smallest unit. */
  readonly amount: bigint;
  /** When it can be executed, in Unix seconds. Whatever the shop has not claimed by then is lost. */
  readonly endsAt: number;
};

/** The messages of each channel, without their kind and time. */
export type Contents = {
  request: RequestRead;
  checks: ChecksMade;
  answer: RequestEnded;
  unrouted: RequestUnrouted;
  delivery: DeliveryEnded;
  settlement: SettlementStep;
  transaction: TransactionStep;
  rpc: RpcRequested;
  block: BlockSeen;
  fault: FaultHit;
  shop: ShopExchange;
  withdrawal: WithdrawalSeen;
};

/** A complete message, as published. */
export type Message<Kind extends keyof Contents> = Contents[Kind] & {
  /** The channel's name; tells messages apart. */
  readonly kind: Kind;
  /** When it was published, in Unix milliseconds. */
  readonly at: number;
};

/** Everything observable about a service, by channel. docs/ARCHITECTURE.md says when each message is published. */
export const channels: { readonly [Kind in keyof Contents]: Channel<Message<Kind>> } = {
  request: defineChannel("request"),
  checks: defineChannel("checks"),
  answer: defineChannel("answer"),
  unrouted: defineChannel("unrouted"),
  delivery: defineChannel("delivery"),
  settlement: defineChannel("settlement"),
  transaction: defineChannel("transaction"),
  rpc: defineChannel("rpc"),
  block: defineChannel("block"),
  fault: defineChannel("fault"),
  shop: defineChannel("shop"),
  withdrawal: defineChannel("withdrawal"),
};

/** The number of body characters kept; a payment has about a thousand. */
export const mostReceived = 4_096;

/** Describes a body that contains no readable payment. Pass `isWhole` if none of the body is missing. */
export function describeReceived(
  body: string,
  { bytes, isWhole, contentType }: Omit<ReceivedBody, "text">,
): ReceivedBody {
  const isShort = body.length <= mostReceived;
  const masked = maskSecrets(isShort ? body : body.slice(0, mostReceived), { isCut: !isShort || !isWhole });
  // A copy: a slice would keep the whole body in memory.
  const text = Buffer.from(masked).toString();
  return { text, bytes, isWhole: isShort && isWhole, contentType };
}

/** A named `node:diagnostics_channel` that carries one type of message. */
export type Channel<Message> = {
  readonly name: string;
  /**
   * Publishes to all subscribers synchronously. `describe` is called only if there are any. Never throws, even if
   * `describe` or a listener does.
   */
  publish(describe: () => Message): void;
  /** True if there are subscribers. Check it before collecting data only to publish it. */
  isHeard(): boolean;
  /**
   * Calls the listener with every message, inside the call that publishes it, so the listener must be fast. An
   * exception in it becomes a process warning; see {@link warnOfObserver}.
   *
   * @returns a function that ends the subscription
   */
  subscribe(listener: (message: Message) => void): () => void;
};

/** Defines the channel `x402-facilitator-kit:NAME`. Only the module that defines it may publish on it. */
export function defineChannel<Message>(name: string): Channel<Message> {
  const fullName = `x402-facilitator-kit:${name}`;
  const channel = nodeChannel(fullName);
  return {
    name: fullName,
    publish(describe) {
      if (!channel.hasSubscribers) return;
      try {
        channel.publish(describe());
      } catch (error) {
        warnOfObserver(`No message could be made for ${fullName}`, error);
      }
    },
    isHeard: () => channel.hasSubscribers,
    subscribe(listener) {
      const onMessage = (message: unknown) => {
        // Node would turn this into an uncaught exception, but an observer must not end a payment or the process.
        try {
          // Published only above, where the type of the message is checked.
          listener(message as Message);
        } catch (error) {
          warnOfObserver(`A listener of ${fullName} failed`, error);
        }
      };
      channel.subscribe(onMessage);
      return () => channel.unsubscribe(onMessage);
    },
  };
}

/** The `code` of process warnings about failed observers. */
export const observerFailed = "X402_OBSERVER_FAILED";

/** The minimum time between two warnings with the same text: what fails for one payment may fail for all. */
const quietMs = 60_000;

const warnedAt = new Map<string, number>();

/**
 * Emits a process warning, with the stack, that an observer failed. No payment decision depends on observers, so
 * everything else continues. Tests fail on this warning; see `test/support/observers-setup.ts`.
 *
 * @param what identifies the observer; the same text is reported at most once a minute
 */
export function warnOfObserver(what: string, error: unknown): void {
  const now = performance.now();
  const before = warnedAt.get(what);
  if (before !== undefined && now - before < quietMs) return;
  warnedAt.set(what, now);
  const detail = error instanceof Error ? (error.stack ?? error.message) : showValue(error);
  process.emitWarning(`${what}; payments are not affected by it. Please report it.`, {
    code: observerFailed,
    detail,
  });
}
