import { isShopAction } from "../../methods/batch-settlement/payloads.ts";
import { methods } from "../../methods/methods.ts";
import { nameOfTestPayer } from "../../payer/test-payers.ts";
import { builtInNetworks, type Network, type NetworkRegistry } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { type KnownTokens, knownToken, type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import { warnOfObserver } from "../channels/channels.ts";
import { namesIn, readInput } from "../explain/read-input.ts";
import {
  type OperationView,
  type PaymentSummary,
  paymentSummarySchema,
  type TimelineEntry,
} from "./payment-view.ts";
import {
  type AnswerEntry,
  type Entry,
  type PaymentRecord,
  receivedIn,
  requestIdOf,
  type ShopEntry,
  seenAtShop,
} from "./record.ts";
import type { Timeline } from "./timeline.ts";

/** The networks and tokens that payments name, if there are more than the built-in ones. */
export type KnownNames = { networks?: NetworkRegistry | undefined; tokens?: KnownTokens | undefined };

/** Summarizes a payment as one row of a list. */
export function summaryOf(record: PaymentRecord, names: KnownNames = {}): PaymentSummary {
  const { id, version, firstSeenAt, lastSeenAt, request } = record;
  const summary: PaymentSummary = {
    id,
    version,
    firstSeenAt,
    lastSeenAt,
    ...termsOf({ request, received: receivedIn(record) ?? headerIn(record) }, names),
    x402Version: request?.x402Version ?? null,
    verify: null,
    settle: null,
    unrouted: null,
    shop: null,
    paidBy: record.paidBy,
    ledger: null,
    settledAt: null,
    transaction: null,
    delivered: null,
    withdrawal: null,
    faults: [],
    charge: null,
  };
  for (const entry of record.entries) takeIn(summary, entry, record.asked);
  summary.charge = chargeOf(record, summary);
  if (request !== undefined && isShopAction(request.payment)) summary.amount = movedBy(record, summary);
  return summary;
}

/** The payment header that a shop got; it names terms as a body does. */
function headerIn(record: PaymentRecord): { text: string } | undefined {
  const { sent } = seenAtShop(record) ?? {};
  return sent && { text: sent.payment.value };
}

/** The amount that was claimed, if the payment allows less than its maximum; null for other payments and failures. */
function chargeOf({ request, entries }: PaymentRecord, { ledger }: PaymentSummary): string | null {
  const { payment } = request ?? {};
  if (payment === undefined || ledger === "failed" || !allowsLess(payment)) return null;
  return claimedAmount(entries);
}

function claimedAmount(entries: PaymentRecord["entries"]): string | null {
  const claim = entries.findLast((entry) => entry.kind === "settlement" && entry.step === "claimed");
  return claim !== undefined && "amount" in claim ? `${claim.amount}` : null;
}

/** The amount that a shop's action moved, from the answer, otherwise from the ledger; null if it moved nothing. */
function movedBy({ entries }: PaymentRecord, { ledger }: PaymentSummary): string | null {
  if (ledger === "failed") return null;
  const answer = entries.findLast((entry) => entry.kind === "answer" && entry.result.amount !== undefined);
  return answer?.kind === "answer" ? (answer.result.amount ?? null) : claimedAmount(entries);
}

/** Payment methods known only to the service are skipped. */
function allowsLess({ method }: PaymentRequest["payment"]): boolean {
  return methods.some(({ name, takesLess }) => name === method && takesLess);
}

function takeIn(summary: PaymentSummary, entry: Entry, asked: PaymentRecord["asked"]): void {
  switch (entry.kind) {
    case "request":
      summary[entry.operation] = { ...open, count: asked[entry.operation] };
      return;
    case "answer": {
      const { outcome, transaction } = entry.result;
      summary[entry.operation] = viewOf(entry, asked[entry.operation]);
      // A success that took nothing has no transaction.
      if (transaction) summary.transaction = transaction;
      if (outcome === "settled") summary.settledAt ??= entry.at;
      return;
    }
    case "unrouted": {
      const { method, path, status, message } = entry;
      summary.unrouted = { method, path, status, message };
      return;
    }
    case "delivery":
      summary.delivered = entry.fate === "delivered";
      return;
    case "settlement":
      if (entry.step !== "delivered") summary.ledger = entry.step;
      if (entry.step === "settled" || entry.step === "recovered") summary.settledAt ??= entry.at;
      // A reorganization or failure undoes an earlier settlement.
      if (entry.step === "reorganized" || entry.step === "failed") summary.settledAt = null;
      if ("transaction" in entry) summary.transaction = entry.transaction ?? null;
      return;
    case "transaction":
      summary.transaction ??= entry.transaction;
      return;
    case "shop":
      summary.shop = shopViewOf(entry);
      return;
    case "fault":
      if (!summary.faults.includes(entry.fault)) summary.faults.push(entry.fault);
      return;
    case "withdrawal":
      summary.withdrawal = { channel: entry.channel, amount: `${entry.amount}`, endsAt: entry.endsAt };
  }
}

function shopViewOf(entry: ShopEntry): PaymentSummary["shop"] {
  const { method, at } = entry;
  const view = { method, path: new URL(entry.url).pathname, at, status: null, tookMs: null };
  if (entry.step === "sent") return { ...view, outcome: "open" };
  const { answer, fate, tookMs } = entry;
  const outcome = fate === "answered" && !entry.isPaid ? "unpaid" : fate;
  return { ...view, outcome, status: answer?.status ?? null, tookMs };
}

const nothingSaid = { status: null, reason: null, message: null, situation: null, chainTime: null };
const open = { outcome: "open", ...nothingSaid, tookMs: null, at: null };

function viewOf(answer: AnswerEntry, count: number): OperationView {
  const { status = null, tookMs, result, at } = answer;
  const { outcome, reason = null, message = null, situation = null, chainTime } = result;
  return {
    outcome,
    status,
    reason,
    message,
    situation,
    tookMs,
    count,
    at,
    chainTime: chainTime === undefined ? null : `${chainTime}`,
  };
}

/** Payer, amount and network of a payment, as lists show them. */
type PaymentTerms = {
  network: string | null;
  payer: string | null;
  /** The payer's name, if it is a test payer. */
  payerName: string | null;
  /** In the asset's smallest unit. */
  amount: string | null;
  asset: string | null;
  /** The units to show the amount in; null if the token is unknown. */
  token: TokenUnits | null;
};

/** A payment, or the body of a request without a readable one. */
type RequestOrBody = { request: PaymentRequest | undefined; received: { text: string } | undefined };

/** The terms of a payment. For an unreadable body, those that it names, so that its sender finds it in the list. */
export function termsOf(
  request: RequestOrBody,
  { networks = builtInNetworks, tokens }: KnownNames,
): PaymentTerms {
  const { network, payer, value, asset } = namedBy(request, networks);
  // A version 1 payment header names no token; it means the network's USDC.
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

type Named = {
  network?: Network | undefined;
  payer?: string | undefined;
  value?: bigint | undefined;
  asset?: string | undefined;
};

function namedBy({ request, received }: RequestOrBody, networks: NetworkRegistry): Named {
  if (request !== undefined) {
    const { knownNetwork: network, payment, requirements } = request;
    return { network, payer: payment.payer, value: payment.limit, asset: requirements.asset };
  }
  const names = received && namesIn(readInput(received.text).input, networks);
  return { ...names, asset: names?.assets[0] };
}

/** The newest `limit` records, newest first. A 402 that was paid is shown as part of its payment. */
export function newestRecords(timeline: Pick<Timeline, "records">, limit?: number): PaymentRecord[] {
  return [...timeline.records()]
    .filter(({ paidBy }) => paidBy === null)
    .sort((a, b) => b.firstSeenAt - a.firstSeenAt)
    .slice(0, limit);
}

/** The newest `limit` summaries, newest first; those from an earlier run come last. */
export function newestSummaries(timeline: Timeline, names: KnownNames, limit?: number): PaymentSummary[] {
  const newest = summariesOf(newestRecords(timeline, limit), names);
  return [...newest, ...earlierSummaries(timeline)].slice(0, limit);
}

/** The summaries of payments from an earlier run, newest first. */
export function earlierSummaries(timeline: Pick<Timeline, "earlier">): PaymentSummary[] {
  return timeline.earlier().map((detail) => ({ ...paymentSummarySchema.parse(detail), version: 0 }));
}

/** The summaries of these records. One that cannot be summarized does not hide the others. */
export function summariesOf(records: Iterable<PaymentRecord>, names: KnownNames = {}): PaymentSummary[] {
  return [...records].flatMap((record) => {
    try {
      return summaryOf(record, names);
    } catch (error) {
      warnOfObserver("A payment could not be summed up for the studio", error);
      return [];
    }
  });
}

/** At most this many lines of a payment are shown, the newest; older ones are only counted. */
const mostLines = 300;

/** The history of a payment, line by line. */
export function linesOf({ entries, omitted }: Pick<PaymentRecord, "entries" | "omitted">): {
  timeline: TimelineEntry[];
  omitted: number;
} {
  const lines = entries.flatMap((entry): TimelineEntry[] => {
    const unknown = { tookMs: null, operation: null, outcome: null };
    const common = { at: entry.at, ok: true, requestId: requestIdOf(entry), ...unknown };
    return describe(entry).map((line) => ({ ...common, ...line }));
  });
  const timeline = lines.slice(-mostLines);
  return { timeline, omitted: omitted + lines.length - timeline.length };
}

type Line = Pick<TimelineEntry, "kind" | "title" | "details"> & Partial<TimelineEntry>;

function describe(entry: Entry): Line[] {
  switch (entry.kind) {
    case "request": {
      const { operation, requestId } = entry;
      return [{ kind: "request", title: `POST /v1/${operation}`, operation, details: { requestId } }];
    }
    case "checks":
      return entry.checks.map(({ check, refusal }) => {
        const { reason, situation, message } = refusal ?? {};
        const details = facts({ reason, situation, message });
        return { kind: "check", title: check, ok: refusal === undefined, details };
      });
    case "answer": {
      const { operation, result, status, tookMs } = entry;
      const { outcome, reason, situation, message, transaction, warnings } = result;
      const warning = warnings?.map(({ code, message }) => `${code}: ${message}`).join("; ");
      const ok = outcome === "valid" || outcome === "settled";
      const details = facts({ status, reason, situation, message, transaction, warning });
      const title = `${operation}: ${outcome}`;
      return [{ kind: "answer", title, operation, outcome, ok, tookMs, details }];
    }
    case "unrouted": {
      const { method, path, status, message } = entry;
      return [{ kind: "answer", title: `${method} ${path}`, ok: false, details: { status, message } }];
    }
    case "delivery":
      return [
        { kind: "delivery", title: `answer ${entry.fate}`, ok: entry.fate === "delivered", details: {} },
      ];
    case "settlement": {
      const { kind: _, at: __, serviceId: ___, settlementId: ____, step, ...rest } = entry;
      const ok = step !== "failed" && step !== "reorganized" && step !== "recoveryPostponed";
      return [{ kind: "ledger", title: step, ok, details: facts(rest) }];
    }
    case "transaction":
      return [describeTransaction(entry)];
    case "rpc": {
      const { endpoint, methods, durationMs: tookMs, error } = entry;
      const details = facts({ endpoint, error });
      return [{ kind: "rpc", title: methods.join(", "), ok: error === undefined, tookMs, details }];
    }
    case "fault": {
      const { fault, methods } = entry;
      const details = methods.length === 0 ? {} : { methods: methods.join(", ") };
      return [{ kind: "fault", title: fault, ok: false, details }];
    }
    case "shop":
      return [describeShop(entry)];
    case "clock":
      return [];
    case "withdrawal": {
      const { channel, amount, endsAt } = entry;
      const details = { channel, amount: `${amount}`, endsAt };
      return [
        { kind: "withdrawal", title: "the payer takes back what is in the channel", ok: false, details },
      ];
    }
  }
}

function describeShop(entry: ShopEntry): Line {
  const asked = `${entry.method} ${new URL(entry.url).pathname}`;
  if (entry.step === "sent") {
    return { kind: "shop", title: `${asked} with ${entry.payment.name}`, details: {} };
  }
  const { answer, fate, problem, tookMs } = entry;
  const ok = answer !== undefined && (answer.status < 400 || !entry.isPaid);
  return {
    kind: "shop",
    title: `${asked}: ${answer?.status ?? fate}`,
    ok,
    tookMs,
    details: facts({ problem }),
  };
}

function describeTransaction(entry: Extract<Entry, { kind: "transaction" }>): Line {
  const { step, transaction } = entry;
  const line = { kind: "transaction", title: step } as const;
  switch (entry.step) {
    case "signed": {
      const { purpose: kind, operator, txNonce, maxFeePerGas, maxPriorityFeePerGas, settlementIds } = entry;
      const payments = settlementIds.length;
      const details = { transaction, kind, operator, txNonce, maxFeePerGas, maxPriorityFeePerGas, payments };
      return { ...line, details: facts(details) };
    }
    case "broadcast": {
      const to = entry.everywhere ? "every endpoint" : "one endpoint";
      return { ...line, details: { transaction, to } };
    }
    case "receipt": {
      const { succeeded, blockNumber, blockHash } = entry;
      const details = facts({ transaction, succeeded, blockNumber, blockHash });
      return { ...line, ok: succeeded, details };
    }
    case "concluded":
      return { ...line, details: facts({ transaction, blockNumber: entry.blockNumber }) };
  }
}

/** The fields of a message that can be shown: strings, numbers and booleans; bigints as decimal strings. */
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
