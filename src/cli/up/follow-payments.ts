import type { RefusalContext, RefusalExplanation } from "../../observe/explain/explanations.ts";
import { explainRecord } from "../../observe/studio/payment-detail.ts";
import { summaryOf } from "../../observe/timeline/summary.ts";
import type { Timeline } from "../../observe/timeline/timeline.ts";
import { errorsSection } from "../../protocol/catalogue-texts.ts";
import { createTimeBudget, type TimeBudget } from "../../util/waiting.ts";
import { type Ended, endedOf, isGood, lineOf, type PaymentLine } from "../kit/payment-line.ts";

/**
 * How much CPU time explanations may take from the payments of the same process: one of a wrong signature takes some 4 ms, so
 * that is a burst of 25, or twelve a second.
 */
const explaining = { share: 0.05, mostMs: 100 };

/**
 * Calls `write` with a line for every verify and settle that ends, and for requests that no route answers. Gives what ends
 * that. Where many are refused, the lines come without the cause that is looked for in the payment, and say how to ask for
 * it.
 */
export function followPayments(
  timeline: Pick<Timeline, "onEntry">,
  context: RefusalContext,
  write: (line: PaymentLine) => void,
  origin: string,
  budget: TimeBudget = createTimeBudget(explaining),
): () => void {
  return timeline.onEntry((entry, [record]) => {
    if (record === undefined || (entry.kind !== "answer" && entry.kind !== "unrouted")) return;
    const operation = entry.kind === "answer" ? entry.operation : null;
    const ended = endedOf(summaryOf(record, context)).find((one) => one.operation === operation);
    if (ended === undefined) return;
    const explain = () => explainRecord(record, context);
    const line = lineOf(ended, isGood(ended) ? [] : (budget.spend(explain) ?? [adviceToAsk(ended)]), origin);
    write({ ...line, transaction: entry.kind === "answer" ? (entry.result.transaction ?? null) : null });
  });
}

/** What is advised where there is no time to look for the cause. */
function adviceToAsk({ payment: { id }, view: { reason } }: Ended): RefusalExplanation {
  return {
    ...{ mistake: "", title: "", at: "", got: null, expected: null, why: "" },
    fix: `Many payments are being refused; \`x402-kit why ${id}\` says what is wrong with this one.`,
    more: reason === null ? "" : errorsSection(reason),
  };
}
