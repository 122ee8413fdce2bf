import { readWholeNumber } from "../../config/values.ts";
import { askHarness } from "../../harness/control/description.ts";
import { describeMistake } from "../../observe/explain/explanations.ts";
import {
  mostListed,
  type PaymentDetail,
  type PaymentSummary,
  type TimelineEntry,
} from "../../observe/timeline/payment-view.ts";
import { formatSpan } from "../../protocol/moments.ts";
import { formatAmount, plural } from "../../protocol/token-units.ts";
import { createSerialQueue } from "../../util/concurrency.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { escapeControls, escapeControlsInText } from "../../util/text.ts";
import { atUrl, defineCommand, flag, option, textOption, tokenOption, urlOption } from "../kit/command.ts";
import {
  type Advised,
  createLineRenderer,
  endedOf,
  explanationAt,
  isGood,
  lineOf,
  type PaymentLine,
  paintOutcome,
  withoutAdvice,
} from "../kit/payment-line.ts";
import { createPaymentReader, type PaymentReader } from "../kit/read-payments.ts";
import { paint, show } from "../kit/terminal.ts";
import { findLastAsked, lastAskedAt } from "./look-up.ts";

const usualLimit = 20;

export const logs = defineCommand({
  options: {
    follow: flag("keep printing payments as they come, until Ctrl-C"),
    limit: option("N", "how many earlier payments to list, at most", {
      read: readWholeNumber(1, mostListed),
      example: "100",
      default: `${usualLimit}`,
    }),
    json: flag("print lines of JSON"),
    url: urlOption,
    token: tokenOption,
  },

  async run({ follow, limit, json, url, token }, { print, printError, takeSignals }) {
    const reader = createPaymentReader(url, token);
    const render = json ? JSON.stringify : createLineRenderer();
    const write = (line: PaymentLine) => print(render(line));
    /** True once a request got no response; each further one would take as long. */
    let isSilent = false;
    async function explanationsOf({ id }: PaymentSummary): Promise<PaymentDetail["explanations"]> {
      if (isSilent) return [];
      try {
        return (await reader.find(id))?.explanations ?? [];
      } catch (error) {
        // One payment that cannot be explained must not end the list.
        if (!(error instanceof KitError)) throw error;
        printError(error.message);
        isSilent = !follow && error.code === "unreachable";
        return [];
      }
    }
    const seen = new Map<string, number>();
    /** Prints the operations that ended since these payments were last seen, in the order of their responses. */
    async function show(payments: readonly PaymentSummary[]): Promise<void> {
      const unseen = payments.flatMap(endedOf).filter(({ payment, operation, view }) => {
        const isSettled = view.outcome === "settled";
        const key = `${isSettled ? "settled" : operation} ${payment.id}`;
        const count = isSettled ? 1 : view.count;
        const isNew = seen.get(key) !== count;
        seen.set(key, count);
        return isNew;
      });
      for (const one of unseen.toSorted((a, b) => a.at - b.at)) {
        write(lineOf(one, isGood(one) ? [] : await explanationsOf(one.payment), url));
      }
    }

    const before = await reader.list(limit);
    await show(before.toReversed());
    // Not on stdout, which programs read line by line.
    if (before.length === 0 && !follow) printError("No payment has been seen there yet.");
    if (!follow) return 0;
    const known = new Set((await reader.list(mostListed)).map(({ id, version }) => `${id} ${version}`));
    const signal = takeSignals();
    const inTurn = createSerialQueue();
    await reader.follow((payment) => {
      if (known.delete(`${payment.id} ${payment.version}`)) return;
      // One at a time and in order, although a line that waits for an explanation holds up those behind it.
      inTurn(() => show([payment])).catch(() => {});
    }, signal);
    return 0;
  },
});

export const why = defineCommand({
  exitCodes:
    "0 if the payment was found, whatever its outcome; 1 if not, if nothing answers, or if `last` is older than a minute",
  options: {
    which: textOption(
      "ID",
      "a payment by its settlement id or the hash of its transaction, or last for the most recent one",
      { positional: true, default: "last" },
    ),
    json: flag("print one line of JSON"),
    brief: flag("with --json: only how the payment ended, what is wrong, and what to do"),
    url: urlOption,
    token: tokenOption,
  },

  check: ({ json, brief }) =>
    brief === true && json !== true ? [{ name: "--brief", problem: "goes with --json" }] : [],

  async run({ which, brief, url, token }) {
    const reader = createPaymentReader(url, token);
    const isLast = which.toLowerCase() === "last";
    const payment = await findSeen(reader, which);
    const settlement = payment === undefined && !isLast ? await reader.findSettlement(which) : undefined;
    if (settlement !== undefined) {
      // Loaded only now, because it imports the database.
      const { describeSettlement } = await import("./settlements.ts");
      const note = "This process has not seen the payment, or has forgotten it. Its ledger has:";
      return {
        json: { settlement, says: note },
        text: escapeControlsInText(`${note}\n\n${describeSettlement(settlement)}`),
      };
    }
    if (payment === undefined) throw await notSeen(which, url);
    const stale = isLast && Date.now() - lastAskedAt(payment) > newForMs;
    const staleness = stale ? nothingNewer(payment) : [];
    const explanations = payment.explanations.map((one) => explanationAt(one, payment, url));
    const says = show([...staleness, ...sayWithout(payment)].join("\n"), false);
    return {
      json: brief
        ? briefOf(payment, explanations, { stale, says })
        : { ...payment, explanations, stale, says },
      text: [...staleness, describe(payment, explanations)].join("\n"),
      code: stale ? 1 : 0,
    };
  },
});

/** The short form of a payment for programs: how its last operation ended, and why. */
function briefOf(
  { id, network, verify, settle, settledAt, unrouted, transaction, shop }: PaymentDetail,
  explanations: readonly Advised[],
  { stale, says }: { stale: boolean; says: string },
) {
  const operation = settle === null ? (verify === null ? null : "verify") : "settle";
  const { outcome, status, reason, message } = settle ??
    verify ?? { outcome: null, status: null, reason: null, message: null, ...unrouted };
  const ended = { operation, outcome, status, reason, message, settledAt, transaction };
  const causes = explanations.map(({ why: _, situation: __, ...cause }) => cause);
  return { id, network, ...ended, shop, causes, stale, says };
}

async function findSeen(reader: PaymentReader, which: string): Promise<PaymentDetail | undefined> {
  const id = which.toLowerCase() === "last" ? (await findLastAsked(reader))?.id : which;
  return id === undefined ? undefined : reader.find(id);
}

async function notSeen(which: string, url: string): Promise<KitError> {
  if (which.toLowerCase() !== "last") {
    return new KitError(`No payment with the id or transaction ${which} has been seen there`, {
      code: "not-found",
      hints: [`List those that were: ${self} logs${atUrl(url)}`],
    });
  }
  // `pay` needs an `up`: a mock has no chains to pay on, and `serve` has no test payers.
  const isUp = (await askHarness(url).catch(() => undefined)) !== undefined;
  return new KitError("No payment has been seen there yet", {
    code: "not-found",
    hints: [
      `Have a client verify or settle one${isUp ? `, or pay yourself: ${self} pay${atUrl(url)}` : "."}`,
      `Payments from before its start are not shown${isUp ? ", but for those of --state" : "; `serve` finds one by its settlement id"}.`,
    ],
  });
}

/** By "last", users mean an attempt within the last minute. */
const newForMs = 60_000;

/** The usual causes of an attempt that never reached this service. */
function nothingNewer(payment: PaymentDetail): readonly string[] {
  return [
    paint.strong(`No payment since ${ageOf(lastAskedAt(payment))}.`),
    ...(payment.shop === null
      ? []
      : ["The shop's proxy has seen no request since either: use the address that `up --shop` printed."]),
    "If you retried, the shop or the client refused the payment before a request to this facilitator:",
    "  - the shop's 402 differs from what was signed: network, asset, amount, payTo or maxTimeoutSeconds;",
    "  - the header has another name or encoding than the shop reads (PAYMENT-SIGNATURE in version 2, X-PAYMENT in 1);",
    "  - the shop uses another facilitator URL, or its client stops at a spending limit.",
    "Compare the payment with the shop's 402 and look at the shop's own log. The last payment seen here:",
    "",
  ];
}

/** Describes a payment: its terms, its outcome, what is wrong and what to do, and its timeline. */
function describe(payment: PaymentDetail, explanations: readonly Advised[]): string {
  const { id, network, payer, payerName, amount, transaction, ledger, unrouted, shop } = payment;
  const who = payerName === null ? payer : `${payerName} (${payer})`;
  // A request without a readable payment may still name some of its terms.
  const terms = [
    amount !== null && formatCharge(amount, payment),
    network !== null && `on ${network}`,
    who !== null && `from ${who}`,
  ].filter((part) => part !== false);
  return [
    `Payment       ${id}`,
    ...(terms.length === 0 ? [] : [`              ${terms.join(" ")}`]),
    `asked         at ${ageOf(lastAskedAt(payment))}`,
    ...(["verify", "settle"] as const).flatMap((operation) => {
      const view = payment[operation];
      if (view === null) return [];
      const { reason, status, count } = view;
      // A success remains one, whatever later responses to the same payment say.
      const wasSettled = operation === "settle" && payment.settledAt !== null && view.outcome !== "settled";
      const outcome = `${wasSettled ? "settled, then " : ""}${view.outcome}`;
      const asked = count > 1 ? `, asked ${count} times` : "";
      return [
        `${operation.padEnd(14)}${paintOutcome(view.outcome, `${outcome}${reason === null ? "" : `: ${reason}`}`)}${status === null ? "" : ` (${status})`}${asked}`,
      ];
    }),
    ...(shop === null
      ? []
      : [
          `shop          ${shop.method} ${shop.path}: ${shop.outcome}${shop.status === null ? "" : ` (${shop.status})`}`,
        ]),
    ...(unrouted === null ? [] : [`answered      ${unrouted.status} to ${unrouted.method} ${unrouted.path}`]),
    ...(ledger === null ? [] : [`ledger        ${ledger}`]),
    ...(transaction === null ? [] : [`transaction   ${transaction}`]),
    "",
    ...explain(payment, explanations),
    ...describeReceived(payment),
    "What happened:",
    ...(payment.omitted > 0 ? [`  ${payment.omitted} earlier lines are not shown`] : []),
    ...foldPassed(payment.timeline).map((entry) => describeEntry(entry, payment)),
  ]
    .map(escapeControls)
    .join("\n");
}

/** The amount of a payment; for a signed maximum, with the part that is charged. */
function formatCharge(amount: string, { charge, token }: PaymentSummary): string {
  const signed = formatAmount(amount, token);
  return charge === null ? signed : `${formatAmount(charge, token)} of at most ${signed}`;
}

/** A time of day in this machine's zone, and how long ago it was: `12:35:02 (2 min ago)`. */
function ageOf(at: number): string {
  const ago = BigInt(Math.max(0, Math.round((Date.now() - at) / 1_000)));
  const date = new Date(at);
  const day = formatSpan(ago).includes("h") || ago > 86_400n ? `${date.toLocaleDateString("en-CA")} ` : "";
  return `${day}${date.toTimeString().slice(0, 8)} (${formatSpan(ago)} ago)`;
}

/** The received body if no payment could be read: the wrong line, or all of it. */
function describeReceived({ received }: PaymentDetail): readonly string[] {
  if (received === null) return [];
  const { text, bytes, isWhole, contentType, problem } = received;
  const line = problem === null ? undefined : text.split("\n")[problem.line - 1];
  const shown =
    problem === null || line === undefined
      ? text.split("\n")
      : [
          line.slice(Math.max(0, problem.column - 61), problem.column + 20),
          markAt(Math.min(problem.column, 61)),
        ];
  return [
    `Received: ${plural(bytes, "byte")}, content-type ${contentType ?? "not given"}${isWhole ? "" : ", of which this is the beginning"}`,
    ...(problem === null ? [] : [`  line ${problem.line}, column ${problem.column}: ${problem.found}`]),
    ...shown.map((one) => `  ${one}`),
    "",
  ];
}

/** An arrow below a column. */
const markAt = (column: number) => `${" ".repeat(column - 1)}^`;

function explain(payment: PaymentDetail, explanations: readonly Advised[]): readonly string[] {
  const { verify, settle } = payment;
  if (explanations.length === 0) return [...sayWithout(payment), ""];
  const message = settle?.message ?? verify?.message ?? null;
  return [
    // If the explanations add nothing to the response, their title already shows it.
    ...(message === null || explanations.some(({ title }) => message.startsWith(title))
      ? []
      : [`Answered: ${withoutAdvice(message, explanations[0]?.fix ?? "")}`, ""]),
    ...explanations.flatMap((explanation) => {
      const [title = "", ...facts] = describeMistake(explanation, "  ");
      const isFix = (line: string) => line.startsWith("  fix:");
      return [paint.strong(title), ...facts.map((line) => (isFix(line) ? paint.advice(line) : line)), ""];
    }),
  ];
}

/** The lines for a payment without explanations. Its shop may still refuse it, which this service cannot see. */
function sayWithout({ explanations, verify, settle, settledAt, shop }: PaymentDetail): readonly string[] {
  if (explanations.length > 0) return [];
  if (shop?.outcome === "unpaid") {
    return [
      "The shop asks for a payment, and none has come through the proxy.",
      "If the client stopped there: see its log for its networks, its spending limit and its balance.",
    ];
  }
  if (shop?.outcome === "open") return ["It is under way at the shop."];
  if ([verify, settle].some((view) => view?.outcome === "open")) return ["It is under way."];
  if (settledAt !== null || settle?.outcome === "settled")
    return ["Nothing is wrong with it: it is settled."];
  return [
    "The facilitator would settle it.",
    "If the shop refused it, compare it with the shop's offer: the facilitator does not see the shop's 402.",
  ];
}

/** Folds consecutive passed checks into one line; `--json` lists them all. */
function foldPassed(timeline: readonly TimelineEntry[]): readonly TimelineEntry[] {
  const folded: TimelineEntry[] = [];
  let passed = 0;
  for (const entry of timeline) {
    const isPassed = entry.kind === "check" && entry.ok;
    passed = isPassed ? passed + 1 : 0;
    if (passed > 1) folded.pop();
    folded.push(passed > 1 ? { ...entry, title: `${passed} passed, the last: ${entry.title}` } : entry);
  }
  return folded;
}

function describeEntry(
  { at, kind, title, ok, tookMs, details }: TimelineEntry,
  { firstSeenAt, verify, settle }: PaymentDetail,
): string {
  const saidAbove = [verify?.message, settle?.message];
  const facts = Object.entries(details)
    .filter(
      ([name, value]) => name !== "requestId" && !(name === "message" && saidAbove.includes(`${value}`)),
    )
    .map(([name, value]) => `${name}=${value}`);
  const took = tookMs === null ? [] : [`${Math.round(tookMs)} ms`];
  return [
    `  ${`+${at - firstSeenAt}`.padStart(6)} ms`,
    ok ? " " : "!",
    kind.padEnd(11),
    title,
    ...took,
    ...facts,
  ].join(" ");
}
