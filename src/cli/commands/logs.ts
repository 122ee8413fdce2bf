import { readWholeNumber } from "../../config/values.ts";
import { adviceOn, type PaymentLine, renderPaymentLine } from "../../explain/payment-line.ts";
import type { OperationView, PaymentDetail, PaymentSummary } from "../../studio/payment-view.ts";
import { createPaymentReader } from "../../studio/read-payments.ts";
import { escapeControls } from "../../util/escape-controls.ts";
import { createTurns } from "../../util/turns.ts";
import { defineCommand, flag, tokenOption, urlOption, valueOption } from "../kit/command.ts";

const usualLimit = 20;

/** As many as an `up` remembers. */
const mostListed = 10_000;

export const logs = defineCommand({
  options: {
    follow: flag("go on with what happens from now on, until Ctrl-C"),
    limit: {
      ...valueOption("how many payments of before, at most", "N", "100", readWholeNumber(1, mostListed)),
      default: `${usualLimit}`,
    },
    json: flag("print lines of JSON"),
    url: urlOption,
    token: tokenOption,
  },

  async run({ follow, limit, json, url, token }, { print, takeSignals }) {
    const reader = createPaymentReader(url, token);
    const write = (line: PaymentLine) =>
      print(json ? escapeControls(JSON.stringify(line)) : renderPaymentLine(line));
    const seen = new Map<string, number>();
    /** Lines of what has ended since this payment was last seen. */
    async function show(payment: PaymentSummary): Promise<void> {
      if (payment.unrouted !== null && !seen.has(payment.id)) {
        seen.set(payment.id, 1);
        const { method, path, status, message } = payment.unrouted;
        const explanations = (await reader.find(payment.id))?.explanations ?? [];
        const reason = status === 404 ? "not-found" : "method-not-allowed";
        const view = { outcome: `${method} ${path}`, status, reason, message, tookMs: null, count: 1 };
        write(lineOf(payment, { operation: null, view, explanations }));
      }
      for (const operation of ["verify", "settle"] as const) {
        const view = payment[operation];
        const key = `${operation} ${payment.id}`;
        if (view === null || view.outcome === "open" || seen.get(key) === view.count) continue;
        seen.set(key, view.count);
        const isGood = ["valid", "settled"].includes(view.outcome);
        const explanations = isGood ? [] : ((await reader.find(payment.id))?.explanations ?? []);
        write(lineOf(payment, { operation, view, explanations }));
      }
    }

    const before = await reader.list(limit);
    for (const payment of before.toReversed()) await show(payment);
    if (!follow) return 0;
    const known = new Set((await reader.list(mostListed)).map(({ id, version }) => `${id} ${version}`));
    const signal = takeSignals();
    const inTurn = createTurns();
    await reader.follow((payment) => {
      if (known.delete(`${payment.id} ${payment.version}`)) return;
      // One after the other: a line that asks for an explanation holds up those behind it.
      inTurn(() => show(payment)).catch(() => {});
    }, signal);
    return 0;
  },
});

function lineOf(
  payment: PaymentSummary,
  {
    operation,
    view,
    explanations,
  }: {
    operation: "verify" | "settle" | null;
    view: OperationView;
    explanations: PaymentDetail["explanations"];
  },
): PaymentLine {
  const { id, network, payer, payerName, amount, lastSeenAt } = payment;
  const { outcome, status, reason, message, tookMs } = view;
  return {
    time: new Date(lastSeenAt).toISOString(),
    ...{ operation, id, network, payer, payerName, amount, outcome, status, reason, message, tookMs },
    ...adviceOn(explanations),
    transaction: operation === "settle" ? payment.transaction : null,
  };
}
