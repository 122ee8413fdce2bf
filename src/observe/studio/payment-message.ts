import type {
  ChecksBegun,
  DeliveryEnded,
  FaultHit,
  RequestEnded,
  RequestRead,
  RequestUnrouted,
  RpcRequested,
  SettlementStep,
  TransactionStep,
} from "../channels/channels.ts";

/** What the channels say about payments; of requests, only what readers need. */
export type PaymentMessage =
  | Pick<RequestRead, "requestId" | "operation">
  /** With the request that they were made for; null where none that was published is open. */
  | (Pick<ChecksBegun, "checks" | "times"> & { readonly requestId: string | null })
  | Pick<RequestEnded, "requestId" | "operation" | "status" | "answer" | "result" | "tookMs" | "received">
  | Pick<RequestUnrouted, "requestId" | "method" | "path" | "status" | "message">
  | DeliveryEnded
  | SettlementStep
  | TransactionStep
  | NodeCall
  /** Without the calls, which hold signatures. */
  | Omit<FaultHit, "calls">;

/** Calls in one HTTP request to a node that were made for the payment, or for a transaction that carries it. */
export type NodeCall = Pick<RpcRequested, "endpoint" | "methods" | "durationMs" | "error">;

/** Messages in their order, and when each was published, by `publicationTime`. */
export type TimedMessages = {
  readonly messages: readonly PaymentMessage[];
  readonly times: readonly number[];
};
