import { channel as nodeChannel } from "node:diagnostics_channel";
import type { Invalid, Situation } from "../../protocol/catalogue.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { Warning } from "../../protocol/strictness.ts";
import { maskSecrets, showValue } from "../../util/text.ts";

/** Which service of this process a message is from: a process may run several. */
export type FromService = { readonly serviceId: string };

/** The headers of a request that say which trace it is part of, unchecked; see W3C Trace Context. */
export type TraceHeaders = {
  readonly traceparent?: string | string[] | undefined;
  readonly tracestate?: string | string[] | undefined;
};

/** A verify or settle whose body is a well-formed payment, before anything of it is checked. */
export type RequestRead = FromService & {
  /** The id of the request in answers and logs. */
  readonly requestId: string;
  /** Undefined where the request came another way than by the service's own HTTP. */
  readonly headers?: TraceHeaders | undefined;
  readonly operation: Operation;
  readonly settlementId: Hex;
  readonly payment: PaymentRequest;
  /** The JSON that the payment was read of; undefined where it came another way. */
  readonly body?: string | undefined;
};

/** One check of a payment. */
export type CheckMade = {
  /** One of `checkNames`. */
  readonly check: string;
  /** Undefined when it passed. */
  readonly refusal: Invalid | undefined;
};

/** Checks of one request, in their order, between which nothing was waited for. */
export type ChecksMade = FromService & {
  readonly settlementId: Hex;
  /** The object of {@link RequestRead}, by which concurrent repeats differ. */
  readonly payment: PaymentRequest;
  readonly checks: readonly CheckMade[];
};

/**
 * How a verify or settle ended.
 * - `valid`, `invalid`, `settled`: decided;
 * - `pending`: signed and sent, and not decided in time;
 * - `refused`: 4xx, the request was refused before a verdict on the payment;
 * - `undetermined`: 5xx, no verdict could be reached;
 * - `abandoned`: the caller left before there was an answer.
 */
export type PaymentOutcome =
  | "valid"
  | "invalid"
  | "settled"
  | "pending"
  | "refused"
  | "undetermined"
  | "abandoned";

/** The answer to a verify or settle, in words that logs, metrics and channels share. */
export type RequestResult = {
  readonly outcome: PaymentOutcome;
  /** Why it is not good, or not answered: an invalid reason, or the name of a problem. */
  readonly reason?: string;
  /** The explanation in the answer. */
  readonly message?: string;
  /** The situation, more exactly than the reason says. */
  readonly situation?: Situation | undefined;
  /** The chain's time that the payment's own was compared with, unix seconds. */
  readonly chainTime?: Invalid["chainTime"];
  readonly transaction?: Hex;
  /** The amount that was taken or moved, in the asset's smallest unit; undefined if the payment itself states it. */
  readonly amount?: string;
  /** The warnings about a good payment. */
  readonly warnings?: readonly Warning[];
};

/** The received body of a request in which no payment could be read. */
export type ReceivedBody = {
  /** Its beginning, at most 4,096 characters, with what may be a secret masked. */
  readonly text: string;
  /** Of the whole body, as far as it was read. */
  readonly bytes: number;
  /** True if the text is all of it. */
  readonly isWhole: boolean;
  readonly contentType: string | undefined;
};

/** A verify or settle that has ended, well-formed or not. */
export type RequestEnded = FromService & {
  readonly requestId: string;
  /** As in {@link RequestRead}. */
  readonly headers?: TraceHeaders | undefined;
  readonly operation: Operation;
  /** Undefined when the body is not a well-formed payment. */
  readonly payment: PaymentRequest | undefined;
  readonly settlementId: Hex | undefined;
  /** As in {@link RequestRead}. */
  readonly body?: string | undefined;
  /** Where no payment could be read of it, and something came. */
  readonly received?: ReceivedBody | undefined;
  /** The HTTP status of the answer; undefined when the caller left before all of it was written. */
  readonly status: number | undefined;
  /** The body of that answer, which holds no secret; undefined where none was written, or none that is text. */
  readonly answer?: string | undefined;
  readonly result: RequestResult;
  /** Milliseconds from the first byte of the request to the last of the answer. */
  readonly tookMs: number;
};

/** A request that no route answers: 404, or 405 where another method is needed. */
export type RequestUnrouted = FromService & {
  readonly requestId: string;
  readonly method: string;
  /** Without its query, cut where it is long. */
  readonly path: string;
  readonly status: 404 | 405;
  /** The explanation in the answer. */
  readonly message: string;
};

/** The outcome of the answer that holds a success: `delivered` when it was written, `lost` when it could not be. */
export type DeliveryFate = "delivered" | "lost";

/** The fate of one success on its way to the caller. */
export type DeliveryEnded = FromService & {
  readonly requestId: string;
  readonly settlementId: Hex;
  readonly fate: DeliveryFate;
};

/** One step of a settlement, durable in the ledger when it is published. */
export type SettlementStep = FromService & { readonly settlementId: Hex } & (
    | {
        readonly step: "claimed";
        readonly network: NetworkName;
        readonly organizationId: string;
        /** How it is paid: `SignedPayment.method`. */
        readonly method: string;
        /**
         * The settled amount, in the asset's smallest unit: for a maximum, the amount in the settle request; for a claim, payout or
         * refund of channels, what it is expected to move.
         */
        readonly amount: bigint;
      }
    /** A block holds it that is not deep enough yet. */
    | { readonly step: "mined"; readonly blockNumber: bigint }
    /** That block has vanished. */
    | { readonly step: "reorganized" }
    /** It moved to another transaction, since the one before decided nothing about it. */
    | { readonly step: "moved" }
    /** Without a transaction where nothing was to be taken. */
    | { readonly step: "settled"; readonly transaction: Hex | undefined }
    | { readonly step: "failed"; readonly transaction: Hex; readonly failure: string }
    /** A direct submission to the token was found, `directSubmission`; its value waits to be paid out. */
    | { readonly step: "recoveryQueued"; readonly directSubmission: Hex }
    | { readonly step: "recoveryPostponed"; readonly problem: string }
    | { readonly step: "recovered"; readonly transaction: Hex }
    | { readonly step: "delivered" }
  );

/** One step of a transaction of an operator, or of a recoverer. */
export type TransactionStep = FromService & {
  readonly network: NetworkName;
  readonly transaction: Hex;
} & (
    | {
        /** Signed and stored, and not sent yet. `purpose` is the `kind` of its `Attempt`. */
        readonly step: "signed";
        readonly purpose: "settle" | "noop" | "forward";
        readonly operator: Address;
        readonly txNonce: number;
        /** The settlements it settles or pays out; empty if an earlier transaction of the txNonce named them. */
        readonly settlementIds: readonly Hex[];
        readonly maxFeePerGas: bigint;
        readonly maxPriorityFeePerGas: bigint;
      }
    /** Handed to the RPC; `everywhere` to all endpoints, since it was sent before. Published before the request. */
    | { readonly step: "broadcast"; readonly everywhere: boolean }
    /** Its receipt was read, which happens again until the block is deep enough. */
    | {
        readonly step: "receipt";
        readonly succeeded: boolean;
        readonly blockNumber: bigint;
        readonly blockHash: Hex;
      }
    /** The ledger has closed its txNonce with this transaction. */
    | { readonly step: "concluded"; readonly blockNumber: bigint }
  );

/** One HTTP request to a JSON-RPC endpoint that is over. */
export type RpcRequested = FromService & {
  readonly network: NetworkName;
  /** The endpoint by its place in the configuration, from "1". Never its URL, which may hold a key. */
  readonly endpoint: string;
  readonly purpose: "read" | "send" | "probe";
  /** The methods of the batch, in order. */
  readonly methods: readonly string[];
  /**
   * Those of them that were called for one settlement, by its id, or for one transaction, by its hash. What was called for
   * no payment is in none.
   */
  readonly about: ReadonlyMap<Hex, readonly string[]>;
  readonly durationMs: number;
  /** Why the answer could not be used; undefined when it was. What is asked again shows as another request. */
  readonly error: string | undefined;
};

/** A block that is the newest one this service has seen of a network. */
export type BlockSeen = FromService & {
  readonly network: NetworkName;
  readonly number: bigint;
  /** Unix seconds. */
  readonly timestamp: bigint;
};

/** A harness's fault that has hit something. */
export type FaultHit = FromService & {
  readonly network: NetworkName;
  readonly faultId: string;
  /** Its kind. */
  readonly fault: string;
  /** The methods of the JSON-RPC calls that it hit; empty for a fault of the chain itself when it is set. */
  readonly methods: readonly string[];
  /**
   * All calls of the HTTP request that it hit, and which of them went wrong by it. Of a fault of the chain itself when it
   * is set: the transactions that it hit, each by its hash.
   */
  readonly calls: readonly { readonly params: readonly unknown[]; readonly isHit: boolean }[];
};

/** The headers of a shop's answer that belong to a payment, and what of its body is about one. */
export type ShopAnswer = {
  readonly status: number;
  /** Those of x402, by their lower-case names: challenges and receipts. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole of a 402 that is not too long; of other errors the beginning, secrets masked. Otherwise empty. */
  readonly body: string;
};

/**
 * A request to the shop behind the recording proxy of `up --shop` that concerns a payment: one with a payment header, or one that
 * was answered with 402 or not at all. Other headers, such as `authorization` and `cookie`, are never part of it.
 */
export type ShopExchange = FromService & {
  /** The same for its request and its end. */
  readonly requestId: string;
  readonly method: string;
  /** The requested URL, without its query. */
  readonly url: string;
  /** The origin of the shop. */
  readonly shop: string;
  /** The id of the settlement that its payment header names; undefined without a readable payment. */
  readonly settlementId: Hex | undefined;
} & (
    | {
        readonly step: "sent";
        readonly payment: { readonly name: string; readonly value: string };
        /** The 402 that it pays for, if that came through the same proxy. */
        readonly challenge: Message<"shop"> | undefined;
      }
    | {
        readonly step: "ended";
        /** True if the request had a payment header. */
        readonly isPaid: boolean;
        /** Undefined if there was none. Published when it begins, and for an error when its body has come. */
        readonly answer: ShopAnswer | undefined;
        /** `left` if the client left before the answer; `down` if the shop gave none. */
        readonly fate: "answered" | "left" | "down";
        /** The system's code for the failed connection to the shop, such as ECONNREFUSED. */
        readonly problem: string | undefined;
        readonly tookMs: number;
      }
  );

/** A payer has announced that it takes back what is in a channel (scheme batch-settlement) that was opened here. */
export type WithdrawalSeen = FromService & {
  readonly network: NetworkName;
  /** Its id. */
  readonly channel: Hex;
  readonly organizationId: string;
  readonly payer: string;
  /** In the token's smallest unit. */
  readonly amount: bigint;
  /** When it can be made, unix seconds: what the shop has not claimed by then is lost. */
  readonly endsAt: number;
};

/** The messages of each channel, besides their kind and time. */
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

/** A message, which is complete when it is published. */
export type Message<Kind extends keyof Contents> = Contents[Kind] & {
  /** Its channel; by which messages are distinguished. */
  readonly kind: Kind;
  /** When it is published, unix milliseconds. */
  readonly at: number;
};

/** Everything that can be observed of a service, by channel; docs/ARCHITECTURE.md describes when each is published. */
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

/** Characters of a body that are kept: a payment has about a thousand. */
export const mostReceived = 4_096;

/** A body in which no payment could be read, as far as people need it. `isWhole`: nothing of it is missing. */
export function describeReceived(
  body: string,
  { bytes, isWhole, contentType }: Omit<ReceivedBody, "text">,
): ReceivedBody {
  const isShort = body.length <= mostReceived;
  const masked = maskSecrets(isShort ? body : body.slice(0, mostReceived), { isCut: !isShort || !isWhole });
  // A copy: a slice would keep all of the body in memory.
  const text = Buffer.from(masked).toString();
  return { text, bytes, isWhole: isShort && isWhole, contentType };
}

/** A named `node:diagnostics_channel` with one type of message. */
export type Channel<Message> = {
  readonly name: string;
  /**
   * Publishes to all subscribers, at once. `describe` is called only when there are any. Neither it nor a listener can
   * make this throw.
   */
  publish(describe: () => Message): void;
  /** Returns true if there are subscribers, for what would have to be collected before it is published. */
  isHeard(): boolean;
  /**
   * Calls the listener with every message, inside the call that publishes it: it must be quick. What it throws becomes a
   * warning of the process; see {@link warnOfObserver}.
   *
   * @returns what ends the subscription
   */
  subscribe(listener: (message: Message) => void): () => void;
};

/** The channel `x402-facilitator-kit:NAME`. Only the module that defines it publishes on it. */
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
        // Node would make it an uncaught exception, and who only looks on must not end a payment, or the process.
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

/** The `code` of the warnings of the process that say that an observer failed. */
export const observerFailed = "X402_OBSERVER_FAILED";

/** Between two warnings of the same text: what fails for one payment may fail for all. */
const quietMs = 60_000;

const warnedAt = new Map<string, number>();

/**
 * Warns, with the stack, that something failed which only looks on at payments: nothing that is decided about them depends
 * on it, so all else goes on. Tests fail for it, in `test/support/observers-setup.ts`.
 *
 * @param what the same text for the same observer; it is a warning at most once a minute
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
