import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { channels } from "../../../observe/channels/channels.ts";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import type { SettleAnswer, VerifyAnswer, Written } from "../../../protocol/answers.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { NetworkRegistry } from "../../../protocol/networks.ts";
import { problemMediaType } from "../../../protocol/problems.ts";
import type { Envelope, RequestParser } from "../../../protocol/requests.ts";
import { settlementPath } from "../../../protocol/routes.ts";
import {
  pendingProblem,
  pendingRetryAfterSeconds,
  refusedSettleAnswer,
  settledAnswer,
  verifyAnswer,
} from "../../../protocol/write-answers.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { followDelivery, holdLastByte } from "../connections/exchange.ts";
import { callerOf } from "../plugins/authentication.ts";
import { urlsOf } from "../server-options.ts";
import { asksForRepeats, invalidResult, readPaymentRequest, readRepetition } from "./payment-request.ts";

export type VerifyRouteOptions = {
  facilitator: Facilitator;
  parse: RequestParser;
  knownNetworks: NetworkRegistry;
  /** Unix milliseconds. */
  now: () => number;
  /** Whether callers without an API key may verify. */
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
    const parsed = readPaymentRequest(request, "verify", { parse, knownNetworks });
    const refusal = parsed.ok
      ? await facilitator.verify(parsed.request, caller, { repeats: asksForRepeats(request) })
      : parsed.invalid;
    request.result = refusal === undefined ? { outcome: "valid" } : invalidResult(refusal);
    const network = parsed.ok ? parsed.request.knownNetwork.name : undefined;
    const hasRecipient = network !== undefined && caller?.organization.recipients[network] !== undefined;
    return verifyAnswer(parsed.ok ? parsed.request : parsed.envelope, refusal, {
      organizationId: caller?.organization.id ?? "anonymous",
      authMethod: hasRecipient ? "organization_specific" : "default",
      timestamp: new Date(now()).toISOString(),
    });
  }
};

/** `POST /settle`. */
export const settleRoute: FastifyPluginAsync<{
  facilitator: Facilitator;
  parse: RequestParser;
  knownNetworks: NetworkRegistry;
  metrics: Metrics;
}> = async (app, { facilitator, parse, knownNetworks, metrics }) => {
  const config = { operation: "settle", apiKey: "required" } as const;
  for (const url of urlsOf("settle")) app.post(url, { config }, answer);

  async function answer(
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Written<SettleAnswer> | FastifyReply> {
    const parsed = readPaymentRequest(request, "settle", { parse, knownNetworks });
    const repetition = readRepetition(request);
    if (!parsed.ok) {
      request.result = invalidResult(parsed.invalid);
      return refusedSettleAnswer(parsed.envelope, parsed.invalid);
    }
    const payment = parsed.request;
    reply.header("location", settlementPath(payment.settlementId));
    const result = await facilitator.settle(payment, callerOf(request), callerLeft(request), repetition);
    switch (result.kind) {
      case "invalid":
        request.result = invalidResult(result.invalid);
        return refusedSettleAnswer(payment, result.invalid);
      case "success":
        request.result = {
          outcome: "settled",
          ...(result.transaction !== "" && { transaction: result.transaction }),
        };
        followDelivery(reply, result.delivery, {
          log: request.log,
          count(fate) {
            metrics.delivery(fate);
            const { serviceId, id: requestId } = request;
            channels.delivery.publish(() => ({
              ...{ kind: "delivery", at: Date.now(), serviceId, requestId, fate },
              settlementId: payment.settlementId,
            }));
          },
        });
        holdLastByte(reply, result.delivery);
        return settledAnswer(payment, result.transaction, result.amount);
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

/** Not decided in time: the caller may ask again. */
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
