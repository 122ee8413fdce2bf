import type { PaymentSummary } from "../payment-view.ts";
import { shorten } from "./format.ts";

/** What a payment came to, in one word; the same wherever it is shown. */
export type Status = "settled" | "valid" | "refused" | "undecided" | "open";

/** In the order in which filters offer them. */
export const statusWords: Readonly<Record<Status, string>> = {
  settled: "Settled",
  valid: "Verified",
  refused: "Refused",
  undecided: "Undecided",
  open: "In progress",
};

export const statuses = Object.keys(statusWords) as Status[];

type Answered = Pick<PaymentSummary, "verify" | "settle" | "unrouted" | "settledAt">;

export function statusOf({ verify, settle, unrouted, settledAt }: Answered): Status {
  if (unrouted !== null) return "refused";
  const last = settle ?? verify;
  if (last === null || last.outcome === "open") return settledAt === null ? "open" : "settled";
  // What was settled stays so, whatever is answered to the same payment later.
  if (last.outcome === "settled" || settledAt !== null) return "settled";
  if (last.outcome === "valid") return "valid";
  return ["pending", "undetermined", "abandoned"].includes(last.outcome) ? "undecided" : "refused";
}

/** Why the status is not a plain success, in a few words: the reason, the step that gave it, and how often it was asked. */
export function noteOf(payment: Answered): string {
  const { verify, settle, unrouted, settledAt } = payment;
  if (unrouted !== null) return unrouted.status === 404 ? "no such route" : "another method is needed";
  const [name, last] = settle === null ? ["verify", verify] : ["settle", settle];
  if (last === null) return "";
  const { outcome, reason, count } = last;
  const often = count > 1 ? ` ×${count}` : "";
  switch (outcome) {
    case "open":
      return `${name} is under way`;
    case "settled":
      return often === "" ? "" : `settle${often}`;
    case "valid":
      return `settle was not asked for${often}`;
    case "pending":
      return `sent, not mined yet${often}`;
    default: {
      const short = shortReason(reason ?? outcome);
      return settledAt === null ? `${short}${often}` : `then ${name}: ${short}${often}`;
    }
  }
}

/** A reason without the words that most have in common. */
export function shortReason(reason: string): string {
  return reason.replace(/^invalid_(exact_evm_payload_)?/, "");
}

/** The time of the last answer, with what it said in full. */
export function titleOfNote({ verify, settle, unrouted }: Answered): string {
  if (unrouted !== null) return unrouted.message;
  return [verify, settle]
    .flatMap((one) => (one === null ? [] : [one.reason ?? one.outcome, one.message ?? []]))
    .flat()
    .join("\n");
}

/** Who pays, or else what was asked for. */
export function whoOf({ payer, payerName, unrouted, verify, settle }: PaymentSummary): string {
  if (payer !== null) return payerName ?? shorten(payer);
  if (unrouted !== null) return `${unrouted.method} ${unrouted.path}`;
  // A request without a good key is refused before anything of it is read.
  return (settle ?? verify)?.status === 401 ? "not read" : "unreadable";
}
