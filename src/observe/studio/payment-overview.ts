import { builtInNetworks, type Network, type NetworkRegistry } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { type KnownTokens, knownToken, type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import { nameOfTestPayer } from "../../published/test-payers.ts";
import { type CheckMade, checksOf, type ReceivedBody } from "../channels/channels.ts";
import { namesIn, readInput } from "../explain/read-input.ts";
import { createRequestIds, type PaymentMessage } from "./payment-message.ts";
import type { OperationView, PaymentSummary, TimelineEntry } from "./payment-view.ts";
import type { StoredPayment } from "./stored-payment.ts";

/** The summary of a payment before any message about it. */
export function beginSummary(
  { id, request, times: [begunAt = 0] }: StoredPayment,
  names: KnownNames = {},
): PaymentSummary {
  const firstSeenAt = Math.floor(begunAt);
  return {
    id,
    version: 0,
    firstSeenAt,
    lastSeenAt: firstSeenAt,
    ...termsOf(request, undefined, names),
    x402Version: request?.x402Version ?? null,
    verify: null,
    settle: null,
    unrouted: null,
    ledger: null,
    settledAt: null,
    transaction: null,
    delivered: null,
  };
}

/**
 * Takes a message about the payment into its summary. Messages come in the order in which they were published.
 *
 * @param at when it was published
 */
export function addToSummary(
  summary: PaymentSummary,
  message: PaymentMessage,
  at: number,
  names: KnownNames = {},
): void {
  if ("result" in message) {
    const { operation, status = null, tookMs } = message;
    const { outcome, reason = null, message: text = null, situation = null } = message.result;
    const { transaction, chainTime } = message.result;
    const before = summary[operation];
    const count = before?.outcome === "open" ? before.count : (before?.count ?? 0) + 1;
    summary[operation] = {
      ...{ outcome, status, reason, message: text, situation, tookMs, count, at: Math.floor(at) },
      chainTime: chainTime === undefined ? null : `${chainTime}`,
    };
    if (transaction !== undefined) summary.transaction = transaction;
    if (outcome === "settled") summary.settledAt ??= Math.floor(at);
    if (message.received !== undefined) {
      Object.assign(summary, termsOf(undefined, message.received, names));
    }
  } else if ("path" in message) {
    const { method, path, status, message: text } = message;
    summary.unrouted = { method, path, status, message: text };
  } else if ("operation" in message) {
    summary[message.operation] = opened(summary[message.operation]);
  } else if ("fate" in message) {
    summary.delivered = message.fate === "delivered";
  } else if ("settlementId" in message && "step" in message) {
    if (message.step !== "delivered") summary.ledger = message.step;
    if (message.step === "settled" || message.step === "recovered") summary.settledAt ??= Math.floor(at);
    // What was mined may be undone.
    if (message.step === "reorganized" || message.step === "failed") summary.settledAt = null;
    if ("transaction" in message) summary.transaction = message.transaction;
  } else if ("transaction" in message) {
    summary.transaction ??= message.transaction;
  }
}

function opened(before: OperationView | null): OperationView {
  const none = { status: null, reason: null, message: null, situation: null, chainTime: null };
  return { outcome: "open", ...none, tookMs: null, at: null, count: (before?.count ?? 0) + 1 };
}

/** The networks and tokens that payments name, where there are more than the built-in ones. */
export type KnownNames = { networks?: NetworkRegistry | undefined; tokens?: KnownTokens | undefined };

/** Who pays what on which network, as lists of payments tell it. */
type PaymentTerms = {
  network: string | null;
  payer: string | null;
  /** The payer's name, if it is a test payer. */
  payerName: string | null;
  /** In the asset's smallest unit. */
  amount: string | null;
  asset: string | null;
  /** How the amount is shown; null if the token is unknown. */
  token: TokenUnits | null;
};

/** The terms of a payment, or else what is named in a body that is none, so that its sender finds it among the others. */
export function termsOf(
  request: PaymentRequest | undefined,
  received: ReceivedBody | undefined,
  { networks = builtInNetworks, tokens }: KnownNames,
): PaymentTerms {
  if (request !== undefined) {
    const { knownNetwork, payment, requirements } = request;
    return describeTerms(
      {
        network: knownNetwork,
        payer: payment.payer,
        value: payment.limit,
        asset: requirements.asset,
      },
      tokens,
    );
  }
  const names = received === undefined ? undefined : namesIn(readInput(received.text).input, networks);
  return describeTerms({ ...names, asset: names?.assets[0] }, tokens);
}

type Named = {
  network?: Network | undefined;
  payer?: string | undefined;
  value?: bigint | undefined;
  asset?: string | undefined;
};

function describeTerms(
  { network, payer, value, asset }: Named,
  tokens: KnownTokens | undefined,
): PaymentTerms {
  // A payment header of version 1 names no token: the network's own is meant.
  const token = asset === undefined ? network?.usdc : knownToken(network, asset, tokens);
  return {
    network: network?.name ?? null,
    payer: payer ?? null,
    payerName: nameOfTestPayer(payer ?? "") ?? null,
    amount: value === undefined ? null : `${value}`,
    asset: asset ?? null,
    token: token === undefined ? null : unitsOf(token),
  };
}

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
      if (!("checks" in message)) return [{ at: times[index] ?? 0, ...common, ...describeMessage(message) }];
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

function describeMessage(message: Exclude<PaymentMessage, { checks: unknown }>): Line {
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
