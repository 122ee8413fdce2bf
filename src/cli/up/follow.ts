import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { originOf } from "../../harness/control/description.ts";
import type { News, RunningHarness } from "../../harness/run/running-harness.ts";
import type { RefusalContext, RefusalExplanation } from "../../observe/explain/explanations.ts";
import { explainRecord } from "../../observe/studio/payment-detail.ts";
import { summaryOf } from "../../observe/timeline/summary.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import { errorsSection } from "../../protocol/catalogue-texts.ts";
import { createTimeBudget, type TimeBudget } from "../../util/waiting.ts";
import {
  createLineRenderer,
  type Ended,
  endedOf,
  isGood,
  isUnpaid,
  lineOf,
  type PaymentLine,
  shortenHex,
} from "../kit/payment-line.ts";
import { paint } from "../kit/terminal.ts";

/**
 * The CPU time that explanations may take from the payments in the same process. A wrong signature takes about 4 ms to
 * explain, so this allows a burst of 25, or twelve per second.
 */
const explaining = { share: 0.05, mostMs: 100 };

/** Prints the lines of {@link followPayments} for a harness in this process. */
export function followHarness(
  { timeline, context, description }: RunningHarness,
  render: (line: PaymentLine) => string = createLineRenderer(),
  print: (line: string) => void,
): void {
  if (timeline === undefined) return;
  const write = (line: PaymentLine) => print(render(line));
  followPayments(timeline, context, write, originOf(description));
}

/**
 * Calls `write` with a line for every finished verify and settle, and for requests without a matching route. Returns a
 * function that stops it. If many payments are refused, the lines lack the cause and say how to look it up.
 */
export function followPayments(
  timeline: Timeline,
  context: RefusalContext,
  write: (line: PaymentLine) => void,
  origin: string,
  budget: TimeBudget = createTimeBudget(explaining),
): () => void {
  return timeline.onEntry((entry, [record]) => {
    const isShop = entry.kind === "shop" && entry.step === "ended";
    if (record === undefined || (entry.kind !== "answer" && entry.kind !== "unrouted" && !isShop)) return;
    const operation = entry.kind === "answer" ? entry.operation : isShop ? "shop" : null;
    const ended = endedOf(summaryOf(record, context)).find((one) => one.operation === operation);
    if (ended === undefined) return;
    const explain = () => explainRecord(record, context);
    const unsaid = () => (isUnpaid(ended) ? [] : [adviceToAsk(ended)]);
    const line = lineOf(ended, isGood(ended) ? [] : (budget.spend(explain) ?? unsaid()), origin);
    write({ ...line, transaction: entry.kind === "answer" ? (entry.result.transaction ?? null) : null });
  });
}

/** The advice if there is no time to look for the cause. */
function adviceToAsk({ payment: { id }, view: { reason } }: Ended): RefusalExplanation {
  return {
    mistake: "",
    situation: null,
    title: "",
    at: "",
    got: null,
    expected: null,
    why: "",
    fix: `Many payments are being refused; \`x402-kit why ${id}\` says what is wrong with this one.`,
    more: reason === null ? "" : errorsSection(reason),
  };
}

/** Describes an action on a running `up` from elsewhere in one line. */
export function describeNews({ what, more, isBad }: News): string {
  const short = more.replace(/0x[0-9a-f]{40}/gi, shortenHex);
  return `${timeOfDay()} ${paint.strong(what.padEnd(7))} ${isBad ? paint.bad(short) : short}`;
}

/** A shop reads it once when it starts; a client that polls is not worth a line each time. */
const quietMs = 1_000;

/** Calls `write` with a line when a shop or another client has read `GET /supported`. */
export function followShops(server: Server, write: (line: string) => void): void {
  let last = -quietMs;
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== "GET" || !/^(\/v1)?\/supported\/?$/.test(request.url?.split("?")[0] ?? "")) return;
    response.once("finish", () => {
      const now = performance.now();
      if (response.statusCode !== 200 || now - last < quietMs) return;
      last = now;
      write(describeNews({ what: "shop", more: "shop connected (GET /supported)" }));
    });
  });
}

function timeOfDay(): string {
  return new Date().toTimeString().slice(0, 8);
}
