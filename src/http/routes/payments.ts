import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import type { IdempotencyKey } from "../../facilitator/idempotent.ts";
import type { SettleResult } from "../../facilitator/settle.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Organizations } from "../../organizations/organizations.ts";
import type { SettleAnswer, VerifyAnswer } from "../../protocol/answers.ts";
import type { Hex } from "../../protocol/hex.ts";
import {
  idempotencyKeyFormat,
  type Operation,
  problemDetails,
  problemMediaType,
} from "../../protocol/problems.ts";
import type { Invalid } from "../../protocol/reasons.ts";
import { type Envelope, parsePaymentRequest } from "../../protocol/requests.ts";
import {
  pendingProblem,
  pendingRetryAfterSeconds,
  refusedSettleAnswer,
  settledAnswer,
  verifyAnswer,
} from "../../protocol/write-answers.ts";
import { authenticate, callerOf } from "../plugins/authentication.ts";
import { followDelivery } from "../plugins/delivery.ts";
import { ProblemError } from "../plugins/problems.ts";
import { type RequestResult, settlementIdOf } from "../plugins/request-log.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Which x402 members the problems of this route carry. */
    operation?: Operation;
  }
}

export type PaymentRouteOptions = {
  facilitator: Facilitator;
  organizations: Organizations;
  metrics: Metrics;
  now: () => number;
  /** Whether verify takes callers without a key. */
  anonymousVerify: boolean;
};

/** `POST /verify` and `POST /settle`. */
export function paymentRoutes(app: FastifyInstance, options: PaymentRouteOptions): void {
  const { facilitator, organizations, metrics, now, anonymousVerify } = options;

  app.post(
    "/verify",
    {
      config: { operation: "verify" },
      onRequest: authenticate(organizations, { anonymous: anonymousVerify }),
    },
    async (request): Promise<VerifyAnswer> => {
      const parsed = read(request);
      const envelope = parsed.ok ? parsed.request : parsed.envelope;
      const refusal = parsed.ok ? await facilitator.verify(parsed.request, request.caller) : parsed.invalid;
      request.result = refusal === undefined ? { outcome: "valid" } : refused(refusal);
      const known = parsed.ok ? parsed.request.knownNetwork.name : undefined;
      const hasRecipient =
        known !== undefined && request.caller?.organization.recipients[known] !== undefined;
      return verifyAnswer(envelope, refusal, {
        organizationId: request.caller?.organization.id ?? "anonymous",
        authMethod: hasRecipient ? "organization_specific" : "default",
        timestamp: new Date(now()).toISOString(),
      });
    },
  );

  app.post(
    "/settle",
    { config: { operation: "settle" }, onRequest: authenticate(organizations) },
    async (request, reply) => {
      const parsed = read(request);
      const idempotency = readIdempotencyKey(request);
      if (!parsed.ok) {
        request.result = refused(parsed.invalid);
        return refusedSettleAnswer(parsed.envelope, parsed.invalid);
      }
      reply.header("location", `/v1/settlements/${settlementIdOf(parsed.request)}`);
      const gone = new AbortController();
      request.exchange.onEnd((end) => {
        if (end === "cut") gone.abort();
      });
      const result = await facilitator.settle(parsed.request, callerOf(request), gone.signal, idempotency);
      return answerSettle(parsed.request, result, request, reply);
    },
  );

  function answerSettle(
    envelope: Envelope,
    result: SettleResult,
    request: FastifyRequest,
    reply: FastifyReply,
  ): SettleAnswer | FastifyReply {
    switch (result.kind) {
      case "invalid":
        request.result = refused(result.invalid);
        return refusedSettleAnswer(envelope, result.invalid);
      case "success":
        request.result = { outcome: "settled", transaction: result.transaction };
        followDelivery({ exchange: request.exchange, socket: request.raw.socket }, result.delivery, {
          log: request.log,
          count: metrics.delivery,
        });
        return settledAnswer(envelope, result.transaction);
      case "pending":
        request.result = { outcome: "pending", transaction: result.transaction };
        return answerPending(envelope, result.transaction, request, reply);
    }
  }
}

/**
 * The `Idempotency-Key`, which is stored: no longer than it need be, and nothing that could be two keys to two readers.
 */
function readIdempotencyKey({ headers, body }: FastifyRequest): IdempotencyKey | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined || key === "") return undefined;
  if (typeof key === "string" && idempotencyKeyFormat.test(key)) return { key, bodyHash: hashBody(body) };
  throw new ProblemError("malformed", problemDetails.idempotencyKey);
}

function read(request: FastifyRequest): ReturnType<typeof parsePaymentRequest> {
  if (request.body === undefined) throw new ProblemError("malformed", problemDetails.empty);
  const parsed = parsePaymentRequest(request.body);
  request.envelope = parsed.ok ? parsed.request : parsed.envelope;
  request.payment = parsed.ok ? parsed.request : undefined;
  return parsed;
}

function hashBody(body: unknown): string {
  return createHash("sha256").update(JSON.stringify(body)).digest("hex");
}

function refused({ reason, message }: Invalid): RequestResult {
  return { outcome: "invalid", reason, message };
}

/** Not decided in time. */
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
