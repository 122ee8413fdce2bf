import type { CheckMade } from "../channels/channels.ts";
import { checksOf } from "../channels/channels.ts";
import type { PaymentMessage } from "./payment-message.ts";
import { createRequestIds } from "./payment-message.ts";
import type { TimelineEntry } from "./payment-view.ts";
import type { StoredPayment } from "./stored-payment.ts";

/** So many lines of a payment are shown, the newest; those before are counted. */
const mostLines = 300;

/** What happened to a payment, line by line. */
export function timelineOf({ messages, times, omitted }: StoredPayment): {
  timeline: TimelineEntry[];
  omitted: number;
} {
  const requestIds = createRequestIds();
  const lines = messages
    .flatMap((message, index): TimelineEntry[] => {
      const common = { ok: true, tookMs: null, requestId: requestIds.of(message) };
      if (!("checks" in message)) return [{ at: times[index] ?? 0, ...common, ...describe(message) }];
      return checksOf(message).map((made) => ({ at: made.at, ...common, ...describeCheck(made) }));
    })
    .sort((a, b) => a.at - b.at);
  const timeline = lines.slice(-mostLines).map((line) => ({ ...line, at: Math.floor(line.at) }));
  return { timeline, omitted: omitted + lines.length - timeline.length };
}

type Line = Pick<TimelineEntry, "kind" | "title" | "details"> & Partial<TimelineEntry>;

function describeCheck({ check, refusal }: CheckMade): Line {
  const details =
    refusal === undefined
      ? {}
      : { reason: refusal.reason, situation: refusal.situation, message: refusal.message };
  return { kind: "check", title: check, ok: refusal === undefined, details };
}

function describe(message: Exclude<PaymentMessage, { checks: unknown }>): Line {
  if ("result" in message) {
    const { operation, result, status, tookMs } = message;
    const { outcome, reason, situation, message: text, transaction } = result;
    return {
      kind: "answer",
      title: `${operation}: ${outcome}`,
      ok: outcome === "valid" || outcome === "settled",
      tookMs,
      details: facts({ status, reason, situation, message: text, transaction }),
    };
  }
  if ("path" in message) {
    const { method, path, status, message: text } = message;
    return { kind: "answer", title: `${method} ${path}`, ok: false, details: { status, message: text } };
  }
  if ("operation" in message) {
    const { operation, requestId } = message;
    return { kind: "request", title: `POST /v1/${operation}`, details: { requestId } };
  }
  if ("fate" in message) {
    const isDelivered = message.fate === "delivered";
    return { kind: "delivery", title: `answer ${message.fate}`, ok: isDelivered, details: {} };
  }
  if ("faultId" in message) {
    const { kind, methods } = message;
    const details = methods.length === 0 ? {} : { methods: methods.join(", ") };
    return { kind: "fault", title: kind, ok: false, details };
  }
  if ("endpoint" in message) {
    const { endpoint, methods, durationMs, error } = message;
    return {
      kind: "rpc",
      title: methods.join(", "),
      ok: error === undefined,
      tookMs: durationMs,
      details: facts({ endpoint, error }),
    };
  }
  if ("settlementId" in message) {
    const { serviceId: _, settlementId: __, step, ...rest } = message;
    const ok = step !== "failed" && step !== "reorganized" && step !== "recoveryPostponed";
    return { kind: "ledger", title: step, ok, details: facts(rest) };
  }
  const { serviceId: _, network: __, step, ...rest } = message;
  const payments = "settlementIds" in rest ? rest.settlementIds.length : undefined;
  const sentTo =
    "everywhere" in rest
      ? { everywhere: undefined, to: rest.everywhere ? "every endpoint" : "one endpoint" }
      : {};
  return {
    kind: "transaction",
    title: step,
    ok: !("succeeded" in rest) || rest.succeeded,
    details: facts({ ...rest, ...sentTo, payments }),
  };
}

/** What can be shown of a message: texts, numbers and flags; big numbers as decimal text. */
function facts(values: Record<string, unknown>): Record<string, string | number | boolean> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => {
      if (typeof value === "bigint") return [[name, value.toString()]];
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? [[name, value]]
        : [];
    }),
  );
}
