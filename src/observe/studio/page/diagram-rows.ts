import { plural } from "../../../protocol/token-units.ts";
import type { ExchangeView, PaymentDetail, TimelineEntry } from "../../timeline/payment-view.ts";
import { formatGwei, formatMs, inWords, shorten, shortReason } from "./format.ts";

/** A row of the waterfall: something between two times, which may be equal; in Unix milliseconds. */
export type WaterfallRow = {
  kind: TimelineEntry["kind"] | "block";
  title: string;
  ok: boolean;
  /** The hash of the transaction that the row is about, if any. `isBroadcast`: the transaction was sent then. */
  transaction?: string;
  isBroadcast?: boolean;
  start: number;
  end: number;
  /** Other known facts, such as the hash of a transaction. */
  facts: readonly (readonly [name: string, value: string])[];
  /** The passed checks that this row stands for, each with its time. */
  passed: readonly { name: string; at: number }[];
};

/** One request about a payment, or what followed the last request. */
export type Phase = {
  /** `verify`, `settle`, an unknown route, or `later` for what followed. */
  name: string;
  start: number;
  end: number;
  /** How it was answered, such as `settled` or `invalid`; undefined while in progress. */
  outcome: string | undefined;
  ok: boolean;
  reason: string | undefined;
  rows: readonly WaterfallRow[];
};

type Draft = { name: string; entries: TimelineEntry[]; start: number; end: number };

/** Splits the history of a payment by request, each with the work done for it. */
export function phasesOf(timeline: readonly TimelineEntry[]): Phase[] {
  const byRequest = new Map<string, Draft>();
  for (const entry of timeline) {
    // Skip shop requests: they last as long as the facilitator requests they lead to.
    if (entry.requestId === null || entry.kind === "shop") continue;
    const draft = byRequest.get(entry.requestId) ?? {
      name: nameOf(entry),
      entries: [],
      start: startOf(entry),
      end: Number.POSITIVE_INFINITY,
    };
    byRequest.set(entry.requestId, draft);
    draft.entries.push(entry);
    draft.start = Math.min(draft.start, startOf(entry));
    if (entry.kind === "answer") draft.end = entry.at;
  }
  const drafts = [...byRequest.values()];
  const later: Draft = { name: "later", entries: [], start: 0, end: 0 };
  for (const entry of timeline) {
    if (entry.requestId !== null) continue;
    // Ledger steps and transactions belong to the settle in progress.
    const of = drafts.findLast(({ name, start, end }) => name !== "verify" && within(entry, start, end));
    const any = of ?? drafts.findLast(({ start, end }) => within(entry, start, end));
    (any ?? later).entries.push(entry);
  }
  const all = later.entries.length === 0 ? drafts : [...drafts, later];
  return all.map(phaseOf).sort((a, b) => a.start - b.start);
}

function within({ at }: TimelineEntry, start: number, end: number): boolean {
  return at >= start && at <= end;
}

function nameOf({ kind, title, operation }: TimelineEntry): string {
  return operation ?? (kind === "answer" ? title : "request");
}

function startOf({ at, tookMs }: TimelineEntry): number {
  return at - (tookMs ?? 0);
}

function phaseOf({ name, entries }: Draft): Phase {
  const inOrder = entries.toSorted((a, b) => a.at - b.at);
  const answer = inOrder.findLast(({ kind }) => kind === "answer");
  const rows = rowsOf(inOrder);
  const reason = answer?.details.reason;
  return {
    name,
    start: Math.min(...inOrder.map(startOf)),
    end: Math.max(...inOrder.map(({ at }) => at)),
    outcome: answer?.outcome ?? undefined,
    ok: answer?.ok ?? rows.every(({ ok }) => ok),
    reason: reason === undefined ? undefined : String(reason),
    rows,
  };
}

function rowsOf(entries: readonly TimelineEntry[]): WaterfallRow[] {
  const rows: WaterfallRow[] = [];
  const passed = entries.filter(({ kind, ok }) => kind === "check" && ok);
  const sentAt = new Map<string, number>();
  const namedTransactions = new Set<string>();
  for (const entry of entries) {
    const { kind, title, ok, at, details } = entry;
    const transaction = String(details.transaction ?? "");
    if (kind === "request") continue;
    if (kind === "check" && ok) {
      if (entry === passed[0]) rows.push(rowOfPassed(passed));
      continue;
    }
    const isBroadcast = kind === "transaction" && title === "broadcast";
    if (isBroadcast) sentAt.set(transaction, at);
    // An answer took as long as its request; the phase's heading already shows that.
    const start = kind === "answer" ? at : startOf(entry);
    const isNamed = namedTransactions.has(transaction);
    const facts = factsOf(entry).filter(([name]) => !isNamed || name !== "transaction");
    namedTransactions.add(transaction);
    const about = transaction === "" ? {} : { transaction };
    const row = { kind, ok, start, end: at, facts, passed: [], isBroadcast, ...about };
    if (kind === "transaction" && title === "receipt") {
      const start = sentAt.get(transaction) ?? at;
      const what = ok ? "mined in block" : "reverted in block";
      const title = `${what} ${details.blockNumber}`;
      rows.push({ ...row, kind: "block", title, start, facts: [] });
    } else {
      rows.push({ ...row, title: titleOf(entry) });
    }
  }
  return rows;
}

function rowOfPassed(checks: readonly TimelineEntry[]): WaterfallRow {
  const [first, last] = [checks[0]?.at ?? 0, checks.at(-1)?.at ?? 0];
  const title = `${plural(checks.length, "check")} passed`;
  const passed = checks.map((check) => ({ name: inWords(check.title), at: check.at }));
  return { kind: "check", title, ok: true, start: first, end: last, facts: [], passed };
}

function titleOf({ kind, title, details }: TimelineEntry): string {
  switch (kind) {
    case "check":
      return `failed: ${inWords(title)}`;
    case "rpc":
      return countedMethods(title);
    case "fault":
      return details.methods === undefined ? title : `${title}: ${countedMethods(String(details.methods))}`;
    case "ledger":
      return inWords(title);
    default:
      return title;
  }
}

/** The methods of a batch, each once with its count. */
function countedMethods(methods: string): string {
  const counts = new Map<string, number>();
  for (const method of methods.split(", ")) counts.set(method, (counts.get(method) ?? 0) + 1);
  return [...counts].map(([method, count]) => (count === 1 ? method : `${method} ×${count}`)).join(", ");
}

/** Facts that the title already has, or that all rows of a request share. */
const shownElsewhere: ReadonlySet<string> = new Set(["requestId", "methods", "message", "blockHash"]);

function factsOf({ kind, details }: TimelineEntry): WaterfallRow["facts"] {
  return Object.entries(details).flatMap(([name, value]): [string, string][] => {
    if (shownElsewhere.has(name) || (kind === "rpc" && name === "endpoint" && value === "1")) return [];
    if (/^max.*PerGas$/.test(name)) return [[inWords(name.replace(/PerGas$/, "")), formatGwei(value) ?? ""]];
    return [[inWords(name), String(value)]];
  });
}

/** The participants of a payment, from left to right. */
export const lanes = ["Client", "Shop", "Facilitator", "Chain"] as const;

type SequenceStep = {
  /** Indexes into {@link lanes}. */
  from: number;
  to: number;
  label: string;
  tone: "plain" | "good" | "bad" | "wait";
  /** False for a step that the facilitator does not see but that can be inferred. */
  isSeen: boolean;
};

const [client, shop, facilitator, chain] = [0, 1, 2, 3];

/** The number of requests drawn, the newest ones. */
const mostPhases = 4;

type Drawn = Pick<PaymentDetail, "timeline" | "signed" | "settledAt"> &
  Partial<Pick<PaymentDetail, "exchanges">>;

/** The messages between client, shop, facilitator and chain, in order. */
export function sequenceOf(payment: Drawn): SequenceStep[] {
  const phases = phasesOf(payment.timeline)
    .filter(({ name }) => name !== "later")
    .slice(-mostPhases);
  const last = phases.at(-1);
  const isPayment = payment.signed !== null;
  const { exchanges = [] } = payment;
  if (exchanges.length > 0) {
    const parts = [
      ...exchanges.map((one) => ({ at: one.sentAt, steps: [requestOf(one)] })),
      ...phases.map((phase) => ({ at: phase.start, steps: stepsOf(phase) })),
      ...exchanges.flatMap((one) =>
        one.endedAt === null ? [] : { at: one.endedAt, steps: [answerOf(one)] },
      ),
    ];
    return parts.sort((a, b) => a.at - b.at).flatMap(({ steps }) => steps);
  }
  return [
    ...(isPayment ? [unseen(client, shop, "request with the signed payment")] : []),
    ...phases.flatMap(stepsOf),
    ...(isPayment && last?.outcome !== undefined ? [unseen(shop, client, answerOfShop(payment, last))] : []),
  ];
}

/** A request to the shop, as seen by the proxy. */
function requestOf({ method, url, header }: ExchangeView): SequenceStep {
  const label = `${method} ${new URL(url).pathname}${header === null ? "" : ` with ${header}`}`;
  return { from: client, to: shop, label, tone: "plain", isSeen: true };
}

function answerOf({ status, challenges, header, receipt }: ExchangeView): SequenceStep {
  const offers = challenges.length > 0 && header === null ? " and its offers" : "";
  const label = `${status ?? "no answer"}${receipt === null ? offers : " and the receipt"}`;
  const isGood = status !== null && status < 400;
  const tone = isGood ? "good" : header === null && status === 402 ? "plain" : "bad";
  return { from: shop, to: client, label, tone, isSeen: true };
}

function unseen(from: number, to: number, label: string): SequenceStep {
  return { from, to, label, tone: "plain", isSeen: false };
}

function isUndecided(outcome: string | undefined): boolean {
  return outcome === "pending" || outcome === "undetermined" || outcome === "abandoned";
}

function answerOfShop({ settledAt }: Drawn, { name, ok, outcome }: Phase): string {
  if (settledAt !== null) return "200 and what was paid for";
  if (isUndecided(outcome)) return "nothing that is paid for, yet";
  if (!ok) return "402 Payment Required";
  return name === "verify" ? "its answer, once it has settled" : "its answer";
}

function stepsOf({ name, rows, outcome, ok, reason, start, end }: Phase): SequenceStep[] {
  const seen = { isSeen: true, tone: "plain" } as const;
  const path = /^(verify|settle)$/.test(name) ? `POST /${name}` : name;
  const calls = rows.filter(({ kind }) => kind === "rpc");
  const failed = calls.filter(({ ok }) => !ok).length;
  const spent = calls.reduce((sum, call) => sum + call.end - call.start, 0);
  const steps: SequenceStep[] = [{ from: shop, to: facilitator, label: path, ...seen }];
  if (calls.length > 0) {
    const what = `${plural(calls.length, "RPC request")} · ${formatMs(spent)}`;
    const label = failed === 0 ? what : `${what} · ${failed} failed`;
    steps.push({ from: facilitator, to: chain, label, ...seen, tone: failed === 0 ? "plain" : "bad" });
  }
  const sent = new Map<string, { step: SequenceStep; times: number }>();
  for (const { kind, title, ok, isBroadcast, transaction = "" } of rows) {
    if (isBroadcast) {
      const label = `transaction ${shorten(transaction)}`;
      const before = sent.get(transaction);
      const times = (before?.times ?? 0) + 1;
      // While blocks are held, the same transaction is sent every second: draw one arrow with a count.
      const step = before?.step ?? { from: facilitator, to: chain, label, ...seen };
      if (before === undefined) steps.push(step);
      else step.label = `${label} ×${times}`;
      sent.set(transaction, { step, times });
    }
    if (kind === "block") {
      steps.push({ from: chain, to: facilitator, label: title, ...seen, tone: ok ? "good" : "bad" });
    }
  }
  const answer = rows.find(({ kind }) => kind === "answer");
  if (answer !== undefined) {
    const status = answer.facts.find(([fact]) => fact === "status")?.[1];
    const said = [outcome === "invalid" ? undefined : (outcome ?? status), reason && shortReason(reason)];
    const label = [...new Set(said)].filter((part) => part !== undefined).join(": ");
    const tone = ok ? "good" : isUndecided(outcome) ? "wait" : "bad";
    steps.push({ from: facilitator, to: shop, label: `${label} · ${formatMs(end - start)}`, ...seen, tone });
  }
  return steps;
}

/** Merges the details of one transaction only: another with its txNonce may have had other fees, or a block that vanished. */
export function ofNewestTransaction(
  steps: readonly Pick<TimelineEntry, "details">[],
): TimelineEntry["details"] {
  const newest = steps.at(-1)?.details.transaction;
  const ofIt = steps.filter(({ details }) => details.transaction === newest);
  return Object.assign({}, ...ofIt.map(({ details }) => details));
}
