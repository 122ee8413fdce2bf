import { describeMistake } from "../../observe/explain/explanations.ts";
import { nameOfLocalToken } from "../../payer/local-chains.ts";
import type { Hex } from "../../protocol/hex.ts";
import { formatAmount } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { aText, requireArgument } from "../../util/given.ts";
import { escapeControls } from "../../util/text.ts";
import type { HarnessControl } from "../control/control-client.ts";
import type {
  JournalRequest,
  JournalRpcCall,
  JournalTransaction,
  OpenRequest,
  OtherRequest,
  PaymentJournal,
} from "./journal.ts";

/** The record of each payment since the start or the last reset. */
export type Journal = {
  /**
   * Returns everything about one payment, as data.
   *
   * @param id its settlement id, or the hash of a transaction that carried it
   * @throws {KitError} if no request named the payment, or no journal is kept
   */
  payment(id: Hex): Promise<PaymentJournal>;
  /** Returns the ids of all payments, in the order in which they first appeared. */
  payments(): Promise<readonly Hex[]>;
  /** Returns the requests without a readable payment: unknown route, wrong API key, or unreadable body. */
  otherRequests(): Promise<readonly OtherRequest[]>;
  /** Returns the same as text, for one payment or for all requests. */
  describe(id?: Hex): Promise<string>;
};

export function createJournal(control: HarnessControl): Journal {
  async function payment(id: Hex): Promise<PaymentJournal> {
    requireArgument("id", id, aText);
    const { payment: found } = await control.journalPayment({ id });
    if (found !== null) return found;
    throw new KitError(`The journal knows no payment ${id}`, {
      code: "not-found",
      hints: ["No request has named it since the start, or since the last reset, as far as it could be read"],
    });
  }
  return {
    payment,
    payments: async () => (await control.journalPayments()).payments,
    otherRequests: async () => (await control.otherRequests()).requests,
    async describe(id) {
      if (id !== undefined) return describePayment(await payment(id));
      const { payments: ids } = await control.journalPayments();
      const { requests: others } = await control.otherRequests();
      // Sequentially: an explanation may query the chain, which cannot answer many at a time.
      const texts: string[] = [];
      for (const each of ids) texts.push(describePayment(await payment(each)));
      return [...texts, ...(others.length === 0 ? [] : [describeOtherRequests(others)])].join("\n\n");
    },
  };
}

/** One line of the timeline; the calls of a batch share one. */
type Line = { at: number; text: string };

/**
 * Writes the timeline of a payment as text: a line for every request, JSON-RPC batch and transaction, with the time since
 * the first one. At the end come the requests that are still open, and why the payment was refused.
 */
export function describePayment(journal: PaymentJournal): string {
  const { id, network, payer, asset, value, token, explanations, requests, open, rpcCalls, transactions } =
    journal;
  // Times are whole milliseconds. Within one, a call comes after the request that made it, and before its answer.
  const lines: Line[] = [
    ...[...requests, ...open].map(({ operation, at }) => ({ at, text: `POST /v1/${operation}` })),
    ...describeCalls(rpcCalls),
    ...transactions.flatMap(describeTransaction),
    ...requests.map(describeAnswer),
  ].toSorted((a, b) => a.at - b.at);
  const from = lines[0]?.at ?? 0;
  return (
    [
      `payment ${id}`,
      token === null
        ? `  of ${value} units of ${asset} by ${payer} on ${network}`
        : `  of ${formatAmount(value, token)} (${value} units of ${asset}) by ${payer} on ${network}`,
      ...lines.map(({ at, text }) => `  ${`+${Math.round(at - from)} ms`.padStart(10)}  ${text}`),
      ...open.map((request) => `  ${"open".padStart(10)}  ${describeOpen(request)}`),
      ...transactions
        .filter(({ mined }) => mined === undefined)
        .map(({ hash }) => `  ${"open".padStart(10)}  transaction ${hash} is not mined`),
      ...explanations.flatMap((explanation) => {
        const fix = withCalls(explanation.fix, journal);
        const [title, ...facts] = describeMistake({ ...explanation, fix }, "    ");
        return [`  why: ${title}`, ...facts];
      }),
    ]
      // The text holds node errors and client input, and tests print it.
      .map(escapeControls)
      .join("\n")
  );
}

/** Replaces commands, which act on the chains of `x402-kit up`, with the calls that a test makes. */
function withCalls(advice: string, { network, payer, asset, value }: PaymentJournal): string {
  const chain = /^\w+$/.test(network) ? `networks.${network}` : `networks["${network}"]`;
  const token = nameOfLocalToken(asset);
  const given = `"${payer}", ${value}n${token === undefined ? "" : `, "${token}"`}`;
  return advice
    .replace("`x402-kit fund`", () => `\`harness.${chain}.fund(${given})\``)
    .replace("`x402-kit approve`", () => `\`harness.${chain}.approvePermit2(${given})\``)
    .replace("`x402-kit reset`", "`harness.reset()`");
}

function describeOpen({ operation, checks }: OpenRequest): string {
  const last = checks.at(-1);
  const checked = last === undefined ? "no check was made" : `the last check was ${last.check}`;
  return `POST /v1/${operation} has no answer; ${checked}`;
}

export function describeOtherRequests(requests: readonly OtherRequest[]): string {
  const lines = requests.flatMap(({ asked, status, reason, message, received }) => {
    const answer = [status ?? "no answer arrived", reason].filter(Boolean).join(" ");
    const line = `  ${asked} → ${answer}${message === undefined ? "" : `: ${message}`}`;
    return received === undefined ? [line] : [line, `    received: ${shortenText(received)}`];
  });
  return ["requests without a payment that could be read", ...lines].map(escapeControls).join("\n");
}

function shortenText(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

function describeAnswer(request: JournalRequest): Line {
  const { operation, at, tookMs, status, outcome, reason, message, transaction, checks } = request;
  const failed = checks.find(({ passed }) => !passed);
  const passed = new Set(checks.filter((check) => check.passed).map(({ check }) => check)).size;
  const tally = failed === undefined ? `${passed} checks passed` : `${failed.check} refused it`;
  const answer = [status ?? "no answer arrived", outcome, reason, transaction].filter(Boolean).join(" ");
  return {
    at: at + tookMs,
    text: `POST /v1/${operation} → ${answer} in ${tookMs.toFixed(1)} ms; ${tally}${message === undefined ? "" : `: ${message}`}`,
  };
}

function describeCalls(calls: readonly JournalRpcCall[]): Line[] {
  const batches = Map.groupBy(calls, ({ at, tookMs }) => `${at} ${tookMs}`);
  return [...batches.values()].map((batch) => {
    const [{ at, tookMs } = { at: 0, tookMs: 0 }] = batch;
    const calls = batch.map(({ method, answer, faults }) => {
      const fault = faults.length === 0 ? "" : ` [fault: ${faults.join(", ")}]`;
      if (answer.error !== undefined) return `${method} → ${JSON.stringify(answer.error)}${fault}`;
      return `${method}${answer.result === undefined ? " → no answer" : ""}${fault}`;
    });
    return { at, text: `  ${calls.join(", ")} (${tookMs.toFixed(1)} ms)` };
  });
}

function describeTransaction({ hash, txNonce, sentAt, payments, mined }: JournalTransaction): Line[] {
  const others = payments > 1 ? `, with ${payments - 1} other payments` : "";
  const end =
    mined === undefined
      ? []
      : [
          {
            at: mined.at,
            text: `  transaction ${hash} mined in block ${mined.blockNumber}: ${mined.succeeded ? "succeeded" : "reverted"}`,
          },
        ];
  return [{ at: sentAt, text: `  transaction ${hash} sent, txNonce ${txNonce}${others}` }, ...end];
}
