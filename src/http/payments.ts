import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Facilitator } from "../facilitator/facilitator.ts";
import type { IdempotencyKey } from "../facilitator/idempotent.ts";
import type { SettleResult } from "../facilitator/settle.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Organizations } from "../organizations/organizations.ts";
import type { AuthContext, SettleAnswer, VerifyAnswer } from "../protocol/answers.ts";
import type { Hex } from "../protocol/hex.ts";
import { type Invalid, settleErrorReason } from "../protocol/reasons.ts";
import { type Envelope, parsePaymentRequest } from "../protocol/requests.ts";
import { authenticate, callerOf } from "./authentication.ts";
import { followDelivery } from "./delivery.ts";
import type { Operation } from "./problems.ts";
import { ProblemError, problemMediaType } from "./problems.ts";
import { idOf } from "./request-log.ts";

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

/** Seconds after which a pending settle may be asked for again. */
const pendingRetryAfterSeconds = 2;

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
      request.result =
        refusal === undefined ? { outcome: "valid" } : { outcome: "invalid", reason: refusal.reason };
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
        request.result = { outcome: "invalid", reason: parsed.invalid.reason };
        return refusedSettle(parsed.envelope, parsed.invalid);
      }
      reply.header("location", `/v1/settlements/${idOf(parsed.request)}`);
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
        request.result = { outcome: "invalid", reason: result.invalid.reason };
        return refusedSettle(envelope, result.invalid);
      case "success":
        request.result = { outcome: "settled", transaction: result.transaction };
        followDelivery({ exchange: request.exchange, socket: request.raw.socket }, result.delivery, {
          log: request.log,
          count: metrics.delivery,
        });
        return {
          success: true,
          transaction: result.transaction,
          network: envelope.network,
          ...payerMember(envelope),
        };
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
  if (typeof key === "string" && /^[\x21-\x7e]{1,255}$/.test(key)) return { key, bodyHash: hashBody(body) };
  throw new ProblemError(
    "malformed",
    "Idempotency-Key must be 1 to 255 visible ASCII characters without spaces",
  );
}

function read(request: FastifyRequest): ReturnType<typeof parsePaymentRequest> {
  if (request.body === undefined)
    throw new ProblemError("malformed", "The body is empty; send the payment as JSON");
  const parsed = parsePaymentRequest(request.body);
  request.envelope = parsed.ok ? parsed.request : parsed.envelope;
  request.payment = parsed.ok ? parsed.request : undefined;
  return parsed;
}

function hashBody(body: unknown): string {
  return createHash("sha256").update(JSON.stringify(body)).digest("hex");
}

function payerMember({ payer }: Envelope): { payer?: string } {
  return payer === undefined ? {} : { payer };
}

function verifyAnswer(
  envelope: Envelope,
  refusal: Invalid | undefined,
  authContext: AuthContext,
): VerifyAnswer {
  const rest = { ...payerMember(envelope), network: envelope.network, authContext };
  return refusal === undefined
    ? { isValid: true, ...rest }
    : { isValid: false, invalidReason: refusal.reason, invalidMessage: refusal.message, ...rest };
}

function refusedSettle(envelope: Envelope, refusal: Invalid): SettleAnswer {
  return {
    success: false,
    errorReason: settleErrorReason(refusal, envelope.x402Version),
    errorMessage: refusal.message,
    transaction: "",
    network: envelope.network,
    ...payerMember(envelope),
  };
}

/**
 * The payment is on its way, and its outcome is not known in time. v2 has a reason for it, which makes public servers
 * ask again; v1 can only say that it could not tell, and names the hash in the text.
 */
function answerPending(
  envelope: Envelope,
  transaction: Hex,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const detail = `Transaction ${transaction} is sent and not decided yet; ask again with the same payment, or at the address in Location`;
  const isV2 = envelope.x402Version === 2;
  return reply
    .code(503)
    .header("retry-after", pendingRetryAfterSeconds)
    .header("x-settlement-state", "pending")
    .type(problemMediaType)
    .send({
      type: "urn:x402-facilitator-kit:problem:settlement-pending",
      title: "The settlement is under way",
      status: 503,
      detail,
      instance: `urn:uuid:${request.id}`,
      success: false,
      errorReason: isV2 ? "settlement_pending" : "unexpected_settle_error",
      errorMessage: detail,
      transaction: isV2 ? transaction : "",
      network: envelope.network,
      ...payerMember(envelope),
    });
}
