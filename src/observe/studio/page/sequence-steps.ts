import type { PaymentDetail } from "../payment-view.ts";
import { formatMs, shorten } from "./format.ts";
import { shortReason } from "./payment-status.ts";
import { type Phase, phasesOf } from "./waterfall-rows.ts";

/** Who takes part in a payment, from left to right. */
export const lanes = ["Client", "Shop", "Facilitator", "Chain"] as const;

export type SequenceStep = {
  /** Places in {@link lanes}. */
  from: number;
  to: number;
  label: string;
  tone: "plain" | "good" | "bad" | "wait";
  /** False of what the facilitator does not see, and which follows from what it does. */
  isSeen: boolean;
};

const [client, shop, facilitator, chain] = [0, 1, 2, 3];

/** Requests of one payment that are drawn, the newest. */
const mostPhases = 4;

type Drawn = Pick<PaymentDetail, "timeline" | "signed" | "settledAt">;

/** How a payment went between client, shop, facilitator and chain, in order. */
export function sequenceOf(payment: Drawn): SequenceStep[] {
  const phases = phasesOf(payment.timeline)
    .filter(({ name }) => name !== "later")
    .slice(-mostPhases);
  const last = phases.at(-1);
  const isPayment = payment.signed !== null;
  return [
    ...(isPayment ? [unseen(client, shop, "request with the signed payment")] : []),
    ...phases.flatMap(stepsOf),
    ...(isPayment && last?.outcome !== undefined ? [unseen(shop, client, answerOfShop(payment, last))] : []),
  ];
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
    const what = `${calls.length} RPC ${calls.length === 1 ? "request" : "requests"} · ${formatMs(spent)}`;
    const label = failed === 0 ? what : `${what} · ${failed} failed`;
    steps.push({ from: facilitator, to: chain, label, ...seen, tone: failed === 0 ? "plain" : "bad" });
  }
  const sent = new Map<string, { step: SequenceStep; times: number }>();
  for (const { kind, title, ok, transaction = "" } of rows) {
    if (kind === "transaction" && title === "broadcast") {
      const label = `transaction ${shorten(transaction)}`;
      const before = sent.get(transaction);
      const times = (before?.times ?? 0) + 1;
      // A held block has the same transaction sent every second: one arrow, with how often.
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
