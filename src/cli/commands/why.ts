import { KitError } from "../../errors.ts";
import { formatUsdc } from "../../explain/payment-line.ts";
import type { PaymentDetail, PaymentSummary, TimelineEntry } from "../../studio/payment-view.ts";
import { createPaymentReader, type PaymentReader } from "../../studio/read-payments.ts";
import { escapeControls } from "../../util/escape-controls.ts";
import { self } from "../../util/self-command.ts";
import { defineCommand, flag, textOption, tokenOption, urlOption } from "../kit/command.ts";

/** More than an `up` remembers. */
const all = 10_000;

export const why = defineCommand({
  options: {
    which: {
      ...textOption(
        "a payment by its settlement id or the hash of its transaction, or last for the newest",
        "ID",
        "last",
      ),
      positional: true,
      default: "last",
    },
    json: flag("print one line of JSON"),
    url: urlOption,
    token: tokenOption,
  },

  async run({ which, json, url, token }, { print }) {
    const payment = await find(createPaymentReader(url, token), which);
    print(json ? escapeControls(JSON.stringify(payment)) : describe(payment));
    return payment.explanations.length === 0 ? 0 : 1;
  },
});

async function find(reader: PaymentReader, which: string): Promise<PaymentDetail> {
  const wanted = which.toLowerCase();
  const isIt = ({ id, transaction }: PaymentSummary) =>
    wanted === "last" || transaction?.toLowerCase() === wanted || id.toLowerCase() === wanted;
  const [summary] = (await reader.list(wanted === "last" ? 1 : all)).filter(isIt);
  const payment = summary && (await reader.find(summary.id));
  if (payment !== undefined) return payment;
  throw wanted === "last"
    ? new KitError("No payment has been seen there yet", { hints: [`Make one: ${self} pay`] })
    : new KitError(`No payment with the id or transaction ${which} has been seen there`, {
        hints: [`List those that were: ${self} logs`],
      });
}

/** The story of a payment: what it is, how it ended, what is wrong and what to do, and what happened when. */
function describe(payment: PaymentDetail): string {
  const { id, network, payer, payerName, amount, transaction, ledger, unrouted } = payment;
  const who = payerName === null ? payer : `${payerName} (${payer})`;
  return [
    `Payment       ${id}`,
    ...(amount === null ? [] : [`              ${formatUsdc(amount)} on ${network}, from ${who}`]),
    ...(["verify", "settle"] as const).flatMap((operation) => {
      const view = payment[operation];
      if (view === null) return [];
      const { outcome, reason, status, count } = view;
      const asked = count > 1 ? `, asked ${count} times` : "";
      return [
        `${operation.padEnd(14)}${outcome}${reason === null ? "" : `: ${reason}`}${status === null ? "" : ` (${status})`}${asked}`,
      ];
    }),
    ...(unrouted === null ? [] : [`answered      ${unrouted.status} to ${unrouted.method} ${unrouted.path}`]),
    ...(ledger === null ? [] : [`ledger        ${ledger}`]),
    ...(transaction === null ? [] : [`transaction   ${transaction}`]),
    "",
    ...explain(payment),
    "What happened:",
    ...payment.timeline.map((entry) => describeEntry(entry, payment.firstSeenAt)),
    ...(payment.omitted > 0 ? [`  … and ${payment.omitted} lines more`] : []),
  ]
    .map(escapeControls)
    .join("\n");
}

function explain({ explanations, verify, settle }: PaymentDetail): readonly string[] {
  if (explanations.length === 0) {
    const open = [verify, settle].some((view) => view?.outcome === "open");
    return [open ? "It is under way." : "Nothing is wrong with it.", ""];
  }
  const message = settle?.message ?? verify?.message ?? null;
  return [
    ...(message === null ? [] : [`Answered: ${message}`, ""]),
    ...explanations.flatMap(({ title, at, got, expected, why, fix, more }) => [
      `${title}${at === "" ? "" : ` (${at})`}`,
      ...(got === null ? [] : [`  got:      ${got}`]),
      ...(expected === null ? [] : [`  expected: ${expected}`]),
      ...(why === "" ? [] : [`  why:      ${why}`]),
      ...(fix === "" ? [] : [`  fix:      ${fix}`]),
      ...(more === "" ? [] : [`  more:     ${more}`]),
      "",
    ]),
  ];
}

function describeEntry({ at, kind, title, ok, tookMs, details }: TimelineEntry, from: number): string {
  const facts = Object.entries(details)
    .filter(([name]) => name !== "requestId")
    .map(([name, value]) => `${name}=${value}`);
  const took = tookMs === null ? [] : [`${Math.round(tookMs)} ms`];
  return [
    `  ${`+${at - from}`.padStart(6)} ms`,
    ok ? " " : "!",
    kind.padEnd(11),
    title,
    ...took,
    ...facts,
  ].join(" ");
}
