import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import { channels } from "../../../observe/channels/channels.ts";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import type { SettleAnswer, Written } from "../../../protocol/answers.ts";
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
} from "../../../protocol/write-answers.ts";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { followDelivery, holdLastByte } from "../connections/delivery.ts";
import { callerOf } from "../plugins/authentication.ts";
import { readRepetition } from "./idempotency-key.ts";
import { invalidResult, readPaymentRequest } from "./payment-request.ts";
import { urlsOf } from "./urls.ts";

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
        request.result = { outcome: "settled", transaction: result.transaction };
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
        return settledAnswer(payment, result.transaction);
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
