import { createHash } from "node:crypto";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { channels, type Message, type RequestResult } from "../../../observe/channels/channels.ts";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import type { SettleAnswer, VerifyAnswer, Written } from "../../../protocol/answers.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { readShopsResource, withShopsResource } from "../../../protocol/payment-identifier.ts";
import {
  idempotencyKeyDetail,
  idempotencyKeyFormat,
  type Operation,
  problemDetails,
  problemMediaType,
} from "../../../protocol/problems.ts";
import type { Envelope, ParsedRequest, PaymentRequest, RequestParser } from "../../../protocol/requests.ts";
import { settlementPath } from "../../../protocol/routes.ts";
import {
  pendingProblem,
  pendingRetryAfterSeconds,
  refusedSettleAnswer,
  settledAnswer,
  verifyAnswer,
  warningsMember,
} from "../../../protocol/write-answers.ts";
import { jsonText } from "../../../util/json.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import type { IdempotencyKey } from "../../facilitator/idempotent.ts";
import { followDelivery, holdLastByte } from "../connections/exchange.ts";
import { urlsOf } from "../connections/listen.ts";
import { callerOf } from "../plugins/request-context.ts";
import { traceHeadersOf } from "../plugins/request-log.ts";
import { ProblemError } from "../problems/problem-error.ts";

export type VerifyRouteOptions = {
  facilitator: Facilitator;
  parse: RequestParser;
  knownNetworks: NetworkRegistry;
  /** Unix milliseconds. */
  now: () => number;
  /** True if callers without an API key may verify. */
  anonymousVerify: boolean;
};

/** `POST /verify`. */
export const verifyRoute: FastifyPluginAsync<VerifyRouteOptions> = async (app, options) => {
  const { facilitator, parse, knownNetworks, now, anonymousVerify } = options;
  const apiKey = anonymousVerify ? "optional" : "required";

  const config = { operation: "verify", apiKey } as const;
  for (const url of urlsOf("verify")) app.post(url, { config }, answer);

  async function answer(request: FastifyRequest): Promise<Written<VerifyAnswer>> {
    const { caller } = request;
    const parsed = readPaymentRequest(request, "verify", { facilitator, parse, knownNetworks });
    const verdict = parsed.ok
      ? await facilitator.verify(parsed.request, caller, { repeats: asksForRepeats(request) })
      : parsed.invalid;
    const [refusal, extra] = verdict !== undefined && "reason" in verdict ? [verdict] : [undefined, verdict];
    const warnings = parsed.ok && refusal === undefined ? facilitator.warningsOf(parsed.request) : [];
    request.result =
      refusal === undefined ? { outcome: "valid", ...warningsMember(warnings) } : invalidResult(refusal);
    const network = parsed.ok ? parsed.request.knownNetwork.name : undefined;
    const hasRecipient = network !== undefined && caller?.organization.recipients[network] !== undefined;
    const authContext = {
      organizationId: caller?.organization.id ?? "anonymous",
      authMethod: hasRecipient ? ("organization_specific" as const) : ("default" as const),
      timestamp: new Date(now()).toISOString(),
    };
    const envelope = parsed.ok ? parsed.request : parsed.envelope;
    const written = verifyAnswer(envelope, refusal, authContext, warnings, facilitator.nameReason);
    return written.isValid && extra?.extra ? { ...written, extra: extra.extra } : written;
  }
};

/** `POST /settle`. */
export const settleRoute: FastifyPluginAsync<{
  facilitator: Facilitator;
  parse: RequestParser;
  knownNetworks: NetworkRegistry;
  metrics: Metrics;
  /** True if callers on this machine call without a proxy in between. */
  noProxies: boolean;
}> = async (app, { facilitator, parse, knownNetworks, metrics, noProxies }) => {
  const config = { operation: "settle", apiKey: "required" } as const;
  for (const url of urlsOf("settle")) app.post(url, { config }, answer);

  async function answer(
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Written<SettleAnswer> | FastifyReply> {
    const parsed = readPaymentRequest(request, "settle", { facilitator, parse, knownNetworks });
    const repetition = readRepetition(request);
    if (!parsed.ok) {
      request.result = invalidResult(parsed.invalid);
      return refusedSettleAnswer(parsed.envelope, parsed.invalid, facilitator.nameReason);
    }
    const caller = callerOf(request);
    let payment = parsed.request;
    const noteName = (named: PaymentRequest) => {
      if (facilitator.isNamedBySettle(named)) {
        channels.request.publish(() => requestMessage(request, "settle", named));
        request.payment = named;
        request.envelope = named;
      }
      payment = named;
      reply.header("location", settlementPath(named.settlementId));
    };
    const result = await facilitator.settle(payment, caller, callerLeft(request), noteName, repetition);
    switch (result.kind) {
      case "invalid":
        request.result = invalidResult(result.invalid);
        return refusedSettleAnswer(payment, result.invalid, facilitator.nameReason);
      case "success": {
        const warnings = facilitator.warningsOf(payment);
        const { transaction, amount, extra } = result;
        request.result = {
          outcome: "settled",
          ...warningsMember(warnings),
          ...(transaction !== "" && { transaction }),
          ...(amount !== undefined && { amount: `${amount}` }),
        };
        followDelivery(reply, result.delivery, {
          log: request.log,
          count(fate) {
            metrics.delivery(fate);
            const { serviceId, id: requestId } = request;
            channels.delivery.publish(() => ({
              kind: "delivery",
              at: Date.now(),
              serviceId,
              requestId,
              fate,
              settlementId: payment.settlementId,
            }));
          },
        });
        holdLastByte(reply, result.delivery, { noProxies });
        const written = settledAnswer(payment, transaction, amount, warnings);
        return written.success && extra ? { ...written, extra } : written;
      }
      case "pending":
        request.result = { outcome: "pending", transaction: result.transaction };
        return answerPending(payment, result.transaction, request, reply);
    }
  }
};

/** Aborts when the answer can no longer be written. */
function callerLeft({ exchange }: FastifyRequest): AbortSignal {
  const controller = new AbortController();
  exchange.onEnd((end) => {
    if (end === "cut") controller.abort();
  });
  return controller.signal;
}

/** The outcome is not known in time: the caller may ask again. */
function answerPending(
  envelope: Envelope,
  transaction: Hex,
  { id }: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return reply
    .code(503)
    .header("retry-after", pendingRetryAfterSeconds)
    .header("x-settlement-state", "pending")
    .type(problemMediaType)
    .send(pendingProblem(envelope, transaction, id));
}

/** Reads the payment from a request's body, and keeps what was readable for problems and the log. */
export function readPaymentRequest(
  request: FastifyRequest,
  operation: Operation,
  { facilitator, parse, knownNetworks }: Pick<VerifyRouteOptions, "facilitator" | "parse" | "knownNetworks">,
): ParsedRequest {
  if (request.body === undefined) throw new ProblemError("malformed", problemDetails.empty);
  const parsed = parse(request.body, knownNetworks);
  const envelope = parsed.ok ? parsed.request : parsed.envelope;
  request.envelope = envelope;
  request.networkName = knownNetworks.find(envelope.network, envelope.x402Version)?.name;
  if (!parsed.ok) return parsed;
  parsed.request = withShopsResource(parsed.request, request.headers["idempotency-key"]);
  const payment = parsed.request;
  request.payment = payment;
  // A request that settle identifies is published later.
  const isNamed = operation === "verify" || !facilitator.isNamedBySettle(payment);
  if (isNamed) channels.request.publish(() => requestMessage(request, operation, payment));
  const { identifierProblem } = payment;
  const isIgnored =
    parsed.requiresIdentifier !== true && facilitator.networkOf(payment)?.strictness === "reference";
  if (identifierProblem !== undefined && !isIgnored) throw new ProblemError("malformed", identifierProblem);
  return parsed;
}

function requestMessage(
  request: FastifyRequest,
  operation: Operation,
  payment: PaymentRequest,
): Message<"request"> {
  const { serviceId, id: requestId } = request;
  return {
    kind: "request",
    at: Date.now(),
    serviceId,
    requestId,
    headers: traceHeadersOf(request),
    operation,
    settlementId: payment.settlementId,
    payment,
    body: request.receivedBytes?.text,
  };
}

/** The result of a request whose payment is invalid. */
export function invalidResult({ reason, message, situation, chainTime }: Invalid): RequestResult {
  return { outcome: "invalid", reason, message, situation, ...(chainTime !== undefined && { chainTime }) };
}

/**
 * Reads the `Idempotency-Key` header; undefined if there is none. Keys are stored, so their length is bounded. Keys
 * that two readers could read differently are refused.
 */
function readIdempotencyKey({ headers, body }: FastifyRequest): IdempotencyKey | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  if (typeof key === "string" && idempotencyKeyFormat.test(key)) return { key, bodyHash: hashBody(body) };
  throw new ProblemError("malformed", idempotencyKeyDetail(key));
}

/** Reads how answers are repeated: by the shop's own key in the header, or by the identifiers inside payments. */
export function readRepetition(
  request: FastifyRequest,
): { idempotency: IdempotencyKey | undefined } | { repeats: boolean } {
  const shops = readShopsResource(request.headers["idempotency-key"]);
  if (shops === undefined) return { idempotency: readIdempotencyKey(request) };
  return { repeats: shops.resource !== undefined };
}

/** Returns true if successes are repeated by the identifiers inside payments; verify ignores the shop's own keys. */
export function asksForRepeats({ headers }: FastifyRequest): boolean {
  return readShopsResource(headers["idempotency-key"])?.resource !== undefined;
}

function hashBody(body: unknown): string {
  return createHash("sha256").update(jsonText(body)).digest("hex");
}
