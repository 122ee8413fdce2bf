import { createHash } from "node:crypto";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Facilitator } from "../facilitator/facilitator.ts";
import type { SettleResult } from "../facilitator/settle.ts";
import type { Caller, Organizations } from "../organizations/organizations.ts";
import type { AuthContext, SettleAnswer, VerifyAnswer } from "../protocol/answers.ts";
import { settlementId } from "../protocol/authorization.ts";
import { type Invalid, settleErrorReason } from "../protocol/reasons.ts";
import { type Envelope, type PaymentRequest, parsePaymentRequest } from "../protocol/requests.ts";
import { authenticate, callerOf } from "./authentication.ts";
import { followDelivery } from "./delivery.ts";
import type { Operation } from "./problems.ts";
import { ProblemError, problemMediaType } from "./problems.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** What was read of the payment before anything could fail; problems repeat it. */
    envelope: Envelope | undefined;
  }
  interface FastifyContextConfig {
    /** Which x402 members the problems of this route carry. */
    operation?: Operation;
  }
}

export type PaymentRouteOptions = {
  facilitator: Facilitator;
  organizations: Organizations;
  now: () => number;
  /** Whether verify takes callers without a key. */
  anonymousVerify: boolean;
};

/** Seconds after which a pending settle may be asked for again. */
const pendingRetryAfterSeconds = 2;

/** `POST /verify` and `POST /settle`. */
export function paymentRoutes(app: FastifyInstance, options: PaymentRouteOptions): void {
  const { facilitator, organizations, now, anonymousVerify } = options;

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
      if (!parsed.ok) return refusedSettle(parsed.envelope, parsed.invalid);
      reply.header("location", `/v1/settlements/${idOf(parsed.request)}`);
      const result = await settle(parsed.request, callerOf(request), request, reply);
      return answerSettle(parsed.request, result, request, reply);
    },
  );

  async function settle(
    payment: PaymentRequest,
    caller: Caller,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<SettleResult> {
    const gone = new AbortController();
    const leave = () => gone.abort();
    reply.raw.once("close", leave);
    const key = request.headers["idempotency-key"];
    try {
      return await facilitator.settle(
        payment,
        caller,
        gone.signal,
        typeof key === "string" && key !== "" ? { key, bodyHash: hashBody(request.body) } : undefined,
      );
    } finally {
      reply.raw.off("close", leave);
    }
  }
}

function read(request: FastifyRequest): ReturnType<typeof parsePaymentRequest> {
  if (request.body === undefined)
    throw new ProblemError("malformed", "The body is empty; send the payment as JSON");
  const parsed = parsePaymentRequest(request.body);
  request.envelope = parsed.ok ? parsed.request : parsed.envelope;
  return parsed;
}

function idOf({ knownNetwork, requirements, authorization }: PaymentRequest): string {
  return settlementId(knownNetwork.chainId, requirements.asset, authorization.from, authorization.nonce);
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

function answerSettle(
  envelope: Envelope,
  result: SettleResult,
  request: FastifyRequest,
  reply: FastifyReply,
): SettleAnswer | FastifyReply {
  switch (result.kind) {
    case "invalid":
      return refusedSettle(envelope, result.invalid);
    case "success":
      followDelivery(reply, result.delivery, request.log);
      return {
        success: true,
        transaction: result.transaction,
        network: envelope.network,
        ...payerMember(envelope),
      };
    case "pending":
      return answerPending(envelope, result.transaction, request, reply);
  }
}

/**
 * The payment is on its way, and its outcome is not known in time. v2 has a reason for it, which makes public servers
 * ask again; v1 can only say that it could not tell, and names the hash in the text.
 */
function answerPending(
  envelope: Envelope,
  transaction: string,
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
