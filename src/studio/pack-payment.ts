import type { CheckMade, RequestResult } from "../channels/channels.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { PaymentIdentifier } from "../protocol/payment-identifier.ts";
import type { Operation } from "../protocol/problems.ts";
import type { PaymentRequest, X402Version } from "../protocol/requests.ts";
import type { PaymentMessage, TimedMessages } from "./payment-message.ts";

/*
 * Payments as text, while they are only kept. Every garbage collection copies or marks what stays in memory, object by
 * object: a verify is some forty objects, or two texts. Only this module writes and reads the texts.
 */

/** A request without its settlement id and known network. What it may lack is null, and big numbers are decimal. */
type PackedRequest = [X402Version, string, string | null, ...PackedAuthorization, ...PackedTerms];
type PackedAuthorization = [Address, Address, string, string, string, Hex, Hex];
type PackedTerms = [string, Address, Address | null, PaymentIdentifier | null];

/** What {@link unpackRequest} makes a request of. */
export function packRequest(request: PaymentRequest): string {
  const { x402Version, network, payer = null, authorization, signature, requirements, identifier } = request;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const { amount, asset, payTo = null } = requirements;
  // biome-ignore format: one line for each part of the type
  const packed: PackedRequest = [
    x402Version, network, payer,
    from, to, `${value}`, `${validAfter}`, `${validBefore}`, nonce, signature,
    `${amount}`, asset, payTo, identifier ?? null,
  ];
  return JSON.stringify(packed);
}

/** What {@link packRequest} was given. */
export function unpackRequest(
  text: string,
  { settlementId, knownNetwork }: Pick<PaymentRequest, "settlementId" | "knownNetwork">,
): PaymentRequest {
  const packed: PackedRequest = JSON.parse(text);
  const [x402Version, network, payer, ...rest] = packed;
  const [from, to, value, validAfter, validBefore, nonce, signature, amount, asset, payTo, identifier] = rest;
  return {
    ...{ x402Version, network, payer: payer ?? undefined, settlementId, knownNetwork },
    authorization: {
      ...{ from, to, value: BigInt(value), nonce },
      ...{ validAfter: BigInt(validAfter), validBefore: BigInt(validBefore) },
    },
    signature,
    requirements: { amount: BigInt(amount), asset, payTo: payTo ?? undefined },
    ...(identifier !== null && { identifier }),
  };
}

/** Times are counted from the first one in the steps of `publicationTime`: short whole numbers are quick to write. */
const stepsPerMs = 1_024;

/** Durations are kept in whole microseconds, for the same reason. */
const perMs = 1_000;

/** Lists of checks that passed, which are few: each is written as its place here. */
const passed: (readonly CheckMade[])[] = [];
const mostLists = 100;

/** A message after its time, by the first letter of what it is. Checks that all passed are a place in {@link passed}. */
type PackedMessage =
  | ["r", number, requestId: string, Operation]
  | ["c", number, requestId: string | null, checks: number | readonly CheckMade[], times: number[]]
  | ["n", number, endpoint: string, methods: readonly string[], durationMs: number, error: string | null]
  | ["a", number, requestId: string, Operation, status: number, result: RequestResult, tookMs: number];

type PackedMessages = [count: number, begunAt: number, messages: PackedMessage[]];

/**
 * The messages of a payment whose requests have all been answered. Undefined where one of them is not about verifying it,
 * or may still grow: a request whose caller has left goes on.
 */
export function packMessages(id: Hex, { messages, times }: TimedMessages): string | undefined {
  const [begunAt = 0] = times;
  const packed: PackedMessage[] = [];
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index];
    const one = message && packMessage(message, { id, begunAt, at: times[index] ?? 0 });
    if (one === undefined) return undefined;
    packed.push(one);
  }
  const all: PackedMessages = [packed.length, begunAt, packed];
  return JSON.stringify(all);
}

function packMessage(
  message: PaymentMessage,
  { id, begunAt, at }: { id: Hex; begunAt: number; at: number },
): PackedMessage | undefined {
  const since = (time: number) => (time - begunAt) * stepsPerMs;
  if ("checks" in message) {
    return ["c", since(at), message.requestId, packChecks(message.checks), message.times.map(since)];
  }
  if ("about" in message) {
    const { endpoint, about, durationMs, error = null } = message;
    const methods = about.get(id);
    // What was asked for its transaction.
    if (methods === undefined) return undefined;
    return ["n", since(at), endpoint, methods, Math.round(durationMs * perMs), error];
  }
  if ("result" in message) {
    const { requestId, operation, status, result, tookMs } = message;
    if (status === undefined || message.received !== undefined) return undefined;
    return ["a", since(at), requestId, operation, status, result, Math.round(tookMs * perMs)];
  }
  if ("operation" in message) return ["r", since(at), message.requestId, message.operation];
  return undefined;
}

function packChecks(checks: readonly CheckMade[]): number | readonly CheckMade[] {
  const known = passed.findIndex(
    (list) => list.length === checks.length && list.every((made, index) => made === checks[index]),
  );
  if (known >= 0) return known;
  if (passed.length >= mostLists || checks.some(({ refusal }) => refusal !== undefined)) return checks;
  return passed.push([...checks]) - 1;
}

/** How many messages a text holds. */
export function countPacked(text: string): number {
  return Number.parseInt(text.slice(1), 10);
}

/** What {@link packMessages} was given; of the calls to nodes, those for this payment. */
export function unpackMessages(id: Hex, text: string): TimedMessages {
  const [, begunAt, packed]: PackedMessages = JSON.parse(text);
  const timeOf = (steps: number) => begunAt + steps / stepsPerMs;
  return {
    messages: packed.map((message) => unpackMessage(message, { id, timeOf })),
    times: packed.map(([, steps]) => timeOf(steps)),
  };
}

function unpackMessage(
  message: PackedMessage,
  { id, timeOf }: { id: Hex; timeOf: (steps: number) => number },
): PaymentMessage {
  switch (message[0]) {
    case "r": {
      const [, , requestId, operation] = message;
      return { requestId, operation };
    }
    case "c": {
      const [, , requestId, made, times] = message;
      const checks = typeof made === "number" ? (passed[made] ?? []) : made;
      return { requestId, checks, times: times.map(timeOf) };
    }
    case "n": {
      const [, , endpoint, methods, duration, error] = message;
      const durationMs = duration / perMs;
      return { endpoint, about: new Map([[id, methods]]), durationMs, error: error ?? undefined };
    }
    case "a": {
      const [, , requestId, operation, status, result, took] = message;
      return { requestId, operation, status, result, tookMs: took / perMs };
    }
  }
}
