import type { FastifyReply, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import { channels, type RequestResult, type TraceHeaders } from "../../../observe/channels/channels.ts";
import { wouldLog } from "../../../observe/log/logger.ts";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { NetworkName } from "../../../protocol/networks.ts";
import type { Operation } from "../../../protocol/problems.ts";
import type { ExchangeEnd } from "../connections/exchange.ts";
import { cutOffBody, receivedBody } from "./read-bodies.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** How it ended; undefined while it has not. */
    result: RequestResult | undefined;
    /** The body of the answer to a verify or settle, where someone listens. */
    answer: string | undefined;
  }
}

/** Not logged by default, like probes: a flood must not fill the disk. The metrics count them. */
const floods: readonly (string | undefined)[] = ["too-many-requests", "overloaded"];

/** The status that counts requests whose caller left before the answer; it is never sent. */
const callerLeft = 499;

/** One line in the log per request, and its place in the metrics, once it is over. */
export const logRequests = fp<{ metrics: Metrics }>(async (app, { metrics }) => {
  app.decorateRequest("result", undefined);
  app.decorateRequest("answer", undefined);
  app.addHook("onSend", (request, _reply, payload, done) => {
    const isWanted = request.route.config.operation !== undefined && channels.answer.isHeard();
    if (isWanted && typeof payload === "string") request.answer = payload;
    done(null, payload);
  });
  app.addHook("onRequest", (request, reply, done) => {
    request.exchange.onEnd((end) => {
      const { route, result, log } = request;
      metrics.http(route.url, end === "written" ? reply.statusCode : callerLeft);
      const { operation } = route.config;
      if (operation !== undefined) {
        recordPayment(operation, request, reply, metrics);
        const { serviceId, id: requestId, payment } = request;
        channels.answer.publish(() => ({
          kind: "answer",
          at: Date.now(),
          serviceId,
          requestId,
          headers: traceHeadersOf(request),
          operation,
          payment,
          settlementId: payment?.settlementId,
          body: payment && request.receivedBytes?.text,
          received: payment === undefined ? receivedBody(request) : undefined,
          status: end === "written" ? reply.statusCode : undefined,
          answer: end === "written" ? request.answer : undefined,
          result: result ?? { outcome: "abandoned", ...cutOffBody(request) },
          tookMs: reply.elapsedTime,
        }));
      }
      const level = route.config.unlimited === true || floods.includes(result?.reason) ? "debug" : "info";
      if (wouldLog(log, level)) log[level](describeRequest(request, reply, end), "request");
    });
    done();
  });
});

function recordPayment(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  metrics: Metrics,
): void {
  metrics.payment({
    operation,
    outcome: request.result?.outcome ?? "abandoned",
    reason: request.result?.reason,
    x402Version: request.envelope?.x402Version,
    network: request.networkName,
    seconds: reply.elapsedTime / 1_000,
  });
}

function describeRequest(request: FastifyRequest, reply: FastifyReply, end: ExchangeEnd): object {
  const { caller, result } = request;
  return {
    method: request.method,
    route: request.route.url,
    ...(end === "written" ? { status: reply.statusCode } : { callerLeft: true }),
    ms: Math.round(reply.elapsedTime),
    ...(caller === null
      ? { address: request.ip }
      : { organization: caller.organization.id, keyId: caller.keyId }),
    ...logFieldsOf(request),
    outcome: result?.outcome,
    reason: result?.reason,
    hash: result?.transaction,
  };
}

const noTraceHeaders: TraceHeaders = {};

/** Only these two: others hold the API key. */
export function traceHeadersOf({ headers: { traceparent, tracestate } }: FastifyRequest): TraceHeaders {
  if (traceparent === undefined && tracestate === undefined) return noTraceHeaders;
  return { traceparent, tracestate };
}

/** What names the payment of a request in every line about it. */
export function logFieldsOf({ envelope, payment, networkName }: FastifyRequest): {
  settlement?: Hex;
  network?: NetworkName | undefined;
  payer?: string | undefined;
} {
  if (payment !== undefined) {
    return { settlement: payment.settlementId, network: payment.knownNetwork.name, payer: payment.payer };
  }
  return envelope === undefined ? {} : { network: networkName, payer: envelope.payer };
}
