import type { FastifyReply, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import {
  channels,
  type RequestResult,
  type SettlementStep,
  type TraceHeaders,
  type TransactionStep,
} from "../../../observe/channels/channels.ts";
import { wouldLog } from "../../../observe/log/logger.ts";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { NetworkName } from "../../../protocol/networks.ts";
import type { Operation } from "../../../protocol/problems.ts";
import type { ExchangeEnd } from "../connections/exchange.ts";
import { cutOffBody, receivedBody } from "./read-bodies.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The result of the request; undefined while it is in progress. */
    result: RequestResult | undefined;
    /** The body of the answer to a verify or settle, kept if the channel has subscribers. */
    answer: string | undefined;
  }
}

/** Not logged by default, like probes: a flood must not fill the disk. The metrics count them. */
const floods: readonly (string | undefined)[] = ["too-many-requests", "overloaded"];

/** Counts requests whose caller left before the answer; this status is never sent. */
const callerLeft = 499;

/** Logs one line per finished request, and counts it in the metrics. */
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
    method: request.payment?.payment.method,
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

/** Only these two: other headers contain the API key. */
export function traceHeadersOf({ headers: { traceparent, tracestate } }: FastifyRequest): TraceHeaders {
  if (traceparent === undefined && tracestate === undefined) return noTraceHeaders;
  return { traceparent, tracestate };
}

/** The fields that identify the payment of a request in every log line about it. */
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

/**
 * Logs the progress of settlements behind the requests, so that a payment can be followed by its settlement id and its
 * transaction hash: signed, sent, mined, settled or failed.
 */
export const logSettlements = fp<{ serviceId: string }>(async (app, { serviceId }) => {
  const { log } = app;
  if (!wouldLog(log, "info")) return;
  const subscriptions = [
    channels.transaction.subscribe((step) => {
      const message = step.serviceId === serviceId ? transactionMessages[step.step] : undefined;
      if (message !== undefined) log.info(describeTransaction(step), message);
    }),
    channels.settlement.subscribe((step) => {
      const message = step.serviceId === serviceId ? settlementMessages[step.step] : undefined;
      if (message !== undefined) log.info(describeSettlement(step), message);
    }),
  ];
  app.addHook("onClose", async () => {
    for (const unsubscribe of subscriptions) unsubscribe();
  });
});

/** Steps that repeat until a block is deep enough are not logged. */
const transactionMessages: Partial<Record<TransactionStep["step"], string>> = {
  signed: "transaction signed",
  broadcast: "transaction sent",
  concluded: "transaction mined",
};

const settlementMessages: Partial<Record<SettlementStep["step"], string>> = {
  settled: "payment settled",
  failed: "payment failed",
  reorganized: "the block of a payment has vanished",
  moved: "payment moved to another transaction",
  recovered: "payment recovered",
};

function describeTransaction(step: TransactionStep): object {
  const { network, transaction: hash } = step;
  switch (step.step) {
    case "signed": {
      const { purpose: kind, operator, txNonce, settlementIds: settlements } = step;
      return { network, hash, kind, operator, txNonce, settlements };
    }
    case "concluded":
      return { network, hash, block: Number(step.blockNumber) };
    default:
      return { network, hash };
  }
}

function describeSettlement(step: SettlementStep): object {
  const { settlementId: settlement } = step;
  switch (step.step) {
    case "settled":
    case "recovered":
      return { settlement, hash: step.transaction };
    case "failed":
      return { settlement, hash: step.transaction, failure: step.failure };
    default:
      return { settlement };
  }
}
