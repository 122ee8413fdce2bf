import { formatAmount, type TokenUnits } from "../../protocol/token-units.ts";
import { escapeControls } from "../../util/text.ts";
import type { RefusalExplanation } from "./explain-refusal.ts";

/** A line of `up` and `logs`: a verify or settle that has ended, or another request. */
export type PaymentLine = {
  /** ISO 8601, UTC. */
  time: string;
  operation: "verify" | "settle" | null;
  /** The settlement id, or `request-ID` where no payment could be read: what `x402-kit why` takes. */
  id: string;
  network: string | null;
  payer: string | null;
  /** The payer's name, if it is a test payer. */
  payerName: string | null;
  /** In the asset's smallest unit. */
  amount: string | null;
  /** How the amount is shown; null if the token is unknown. */
  token: TokenUnits | null;
  outcome: string;
  status: number | null;
  reason: string | null;
  message: string | null;
  /** What to change; null where nothing is wrong. */
  fix: string | null;
  /** Where to read on; null where nothing is wrong. */
  more: string | null;
  transaction: string | null;
  tookMs: number | null;
};

/** The line as text; for a refusal, the lines below it say what is wrong and what to do. */
export function renderPaymentLine(line: PaymentLine): string {
  const { time, operation, network, payer, payerName, amount, token, outcome, status, reason, transaction } =
    line;
  const words = [
    new Date(time).toTimeString().slice(0, 8),
    (operation ?? "request").padEnd(7),
    (network ?? "-").padEnd(16),
    (payerName ?? (payer === null ? "-" : shortenHex(payer))).padEnd(16),
    (amount === null ? "-" : formatAmount(amount, token)).padEnd(14),
    reason === null ? outcome : `${outcome}: ${reason}`,
    ...(status === null || status === 200 ? [] : [`(${status})`]),
    ...(transaction === null ? [] : [shortenHex(transaction)]),
    ...(line.tookMs === null ? [] : [`${Math.round(line.tookMs)} ms`]),
  ];
  const { message, fix, more } = line;
  return [
    words.join(" "),
    ...(message === null ? [] : [`         why: ${message}`]),
    ...(fix === null || fix === "" || message?.includes(fix) === true ? [] : [`         fix: ${fix}`]),
    ...(more === null || more === "" ? [] : [`         more: ${more}`]),
  ]
    .map(escapeControls)
    .join("\n");
}

/** What to do about the worst finding, and where to read on. */
export function adviceOn(explanations: readonly RefusalExplanation[]): Pick<PaymentLine, "fix" | "more"> {
  const [worst] = explanations;
  if (worst === undefined) return { fix: null, more: null };
  const { at, got, expected, fix, more } = worst;
  if (got === null) return { fix, more };
  const facts =
    expected === null ? `${at === "" ? "got" : `${at}:`} ${got}` : `got ${got}; expected ${expected}`;
  return { fix: `${fix} (${facts})`, more };
}

/** The beginning and the end of an address or a hash. */
export function shortenHex(hex: string): string {
  return `${hex.slice(0, 8)}…${hex.slice(-4)}`;
}
