import type { PaymentRequest } from "../../protocol/requests.ts";
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

/** Tells which request a message of a payment belongs to, given all its messages in their order. */
export function createRequestIds(): { of(message: PaymentMessage): string | null } {
  const open = new Set<string>();

  function onlyOpen(): string | null {
    const [only, ...others] = open;
    return only !== undefined && others.length === 0 ? only : null;
  }

  return {
    of(message) {
      if ("checks" in message) return message.requestId;
      if ("endpoint" in message || "faultId" in message) return onlyOpen();
      if (!("requestId" in message)) return null;
      const { requestId } = message;
      if ("result" in message) open.delete(requestId);
      else if ("operation" in message) open.add(requestId);
      return requestId;
    },
  };
}

/**
 * Which payments a fault of a connection hit, of those that it may have been: a call names its payment by the authorization
 * nonce, the signature, or the hash of a transaction. One that names none, as for the newest block, counts for all that
 * its HTTP request asks for; a balance, for those of its payer.
 *
 * @param carriedBy the payments that a transaction carries
 */
export function paymentsHitBy<P extends { readonly request: PaymentRequest | undefined }>(
  { calls }: FaultHit,
  candidates: readonly P[],
  carriedBy: (transaction: string) => readonly P[],
): ReadonlySet<P> {
  const named = calls.map(({ params, isHit }) => {
    const text = JSON.stringify(params).toLowerCase();
    const [first] = params;
    const byHash = typeof first === "string" ? carriedBy(first.toLowerCase()) : [];
    const byMark = candidates.filter((payment) => isAbout(marksOf(payment), text));
    return { text, isHit, payments: [...byHash, ...byMark] };
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

/** This many digits of a signature tell it from others; a shorter one, which is malformed, does not. */
const markLength = 64;

/** To read the request of a payment again takes some time, and all are looked through for each call. */
const known = new WeakMap<object, readonly string[]>();

/**
 * Hexadecimal digits by which a JSON-RPC call is known to be about a payment: an authorization nonce is 32 random bytes and
 * stands in every simulation and every transaction of its payment, and the signature in what wallets are asked. None of one
 * that is not readable.
 */
export function marksOf(payment: { readonly request: PaymentRequest | undefined }): readonly string[] {
  const marks = known.get(payment) ?? readMarks(payment.request);
  known.set(payment, marks);
  return marks;
}

function readMarks(request: PaymentRequest | undefined): readonly string[] {
  if (request === undefined) return [];
  const { nonce, signature } = request.payment;
  return [nonce.slice(2), signature.slice(2, 2 + markLength)].map((mark) => mark.toLowerCase());
}

/** Whether the parameters of a call, as JSON in lower case, have one of these marks. */
export function isAbout(marks: readonly string[], text: string): boolean {
  return marks.some((mark) => mark.length === markLength && text.includes(mark));
}
