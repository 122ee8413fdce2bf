import { pathToFileURL } from "node:url";
import { type AdviceContext, optionsOf } from "../../observe/explain/command-options.ts";
import { keepsFromPaying } from "../../observe/explain/explain-shop.ts";
import type { RefusalExplanation } from "../../observe/explain/explanations.ts";
import type { OperationView, PaymentSummary } from "../../observe/timeline/payment-view.ts";
import { errorsFile, errorsSectionAt } from "../../protocol/catalogue-texts.ts";
import { formatAmount, type TokenUnits } from "../../protocol/token-units.ts";
import { packageFile, self, selfWords } from "../../util/self-command.ts";
import { escapeControls } from "../../util/text.ts";
import { atUrl } from "./command.ts";
import { paint } from "./terminal.ts";

/** A line of `up` and `logs`: a finished verify or settle, or another request. */
export type PaymentLine = {
  /** ISO 8601, UTC. */
  time: string;
  /** `shop` for a request to the shop behind `up --shop`. */
  operation: "verify" | "settle" | "shop" | null;
  /** The argument for `x402-kit why`: the settlement id, or `request-ID` if no payment could be read. */
  id: string;
  network: string | null;
  payer: string | null;
  /** The payer's name, if it is a test payer. */
  payerName: string | null;
  /** In the asset's smallest unit. */
  amount: string | null;
  /** How to show the amount; null if the token is unknown. */
  token: TokenUnits | null;
  outcome: string;
  status: number | null;
  reason: string | null;
  message: string | null;
  /** The advice; null if nothing is wrong. */
  fix: string | null;
  /** The words of the first command in the advice that can be run as is; null if there is none. */
  command: readonly string[] | null;
  /** The section of docs/errors.md about it; null if nothing is wrong. */
  more: string | null;
  transaction: string | null;
  tookMs: number | null;
};

/** A finished verify or settle, or a request without a matching route. */
export type Ended = {
  payment: PaymentSummary;
  operation: PaymentLine["operation"];
  view: OperationView;
  /** When it was answered, in Unix milliseconds. */
  at: number;
};

/** The finished operations of a payment, according to its summary. */
export function endedOf(payment: PaymentSummary): readonly Ended[] {
  const { unrouted, lastSeenAt, settle, settledAt, shop } = payment;
  const asked = (["verify", "settle"] as const).flatMap((operation): readonly Ended[] => {
    const view = payment[operation];
    if (view === null || view.outcome === "open") return [];
    // An `up` of an earlier version does not report the time.
    return [{ payment, operation, view, at: view.at ?? lastSeenAt }];
  });
  // A success remains one, whatever later responses to the same payment say.
  if (settledAt !== null && settle !== null && settle.outcome !== "settled") {
    const none = { reason: null, message: null, situation: null, chainTime: null, tookMs: null };
    const view = { ...settle, ...none, outcome: "settled", status: null, at: settledAt };
    asked.push({ payment, operation: "settle", view, at: settledAt });
  }
  if (shop !== null && shop.outcome !== "open" && payment.paidBy === null) {
    const { method, path, status, tookMs, at } = shop;
    const outcome = `${method} ${path}: ${shop.outcome}`;
    const unsaid = { reason: null, message: null, situation: null, chainTime: null };
    asked.push({
      payment,
      operation: "shop",
      view: { outcome, status, tookMs, at, ...unsaid, count: 1 },
      at,
    });
  }
  if (unrouted === null) return asked;
  const { method, path, status, message } = unrouted;
  const reason = status === 404 ? "not-found" : "method-not-allowed";
  const none = { situation: null, chainTime: null, tookMs: null, at: null };
  const view = { outcome: `${method} ${path}`, status, reason, message, ...none, count: 1 };
  return [{ payment, operation: null, view, at: lastSeenAt }, ...asked];
}

/** Returns true for a 402 that no payment has followed yet. */
export function isUnpaid({ operation, payment: { shop } }: Ended): boolean {
  return operation === "shop" && shop?.outcome === "unpaid";
}

/** Returns true if there is nothing to explain. */
export function isGood({ view, operation, payment: { settledAt } }: Ended): boolean {
  if (operation === "shop") return settledAt !== null && (view.status ?? 500) < 400;
  return view.outcome === "valid" || view.outcome === "settled";
}

/**
 * Creates the line for a finished operation. For a refusal, `explained` says why.
 *
 * @param origin the service's origin, for commands and links to its pages
 */
export function lineOf(ended: Ended, explained: readonly RefusalExplanation[], origin: string): PaymentLine {
  const { payment, operation, view, at } = ended;
  // For a 402, findings that do not keep buyers from paying are left to `why` and `check`.
  const explanations = isUnpaid(ended) ? explained.filter(keepsFromPaying) : explained;
  const { id, network, payer, payerName, amount, token } = payment;
  const { outcome, status, reason, tookMs } = view;
  const [worst] = explanations;
  const place = isUnpaid(ended) && worst?.at ? ` (${worst.at})` : "";
  const ofShop = operation === "shop" && worst !== undefined ? `${worst.title}${place}` : null;
  const message = view.message ?? ofShop;
  return {
    time: new Date(at).toISOString(),
    operation,
    id,
    network,
    payer,
    payerName,
    amount,
    token,
    outcome,
    status,
    reason,
    message,
    tookMs,
    ...adviceOn(
      explanations.map((one) => explanationAt(one, payment, origin)),
      message,
    ),
    transaction: ["settled", "pending"].includes(outcome) ? payment.transaction : null,
  };
}

/** How many lines back a reader still sees an explanation. */
const mostBetween = 10;

/**
 * Renders lines as text; below a refusal, further lines say what is wrong and what to do. Verify and settle of one
 * payment are usually refused for the same reason, which is then printed once.
 */
export function createLineRenderer(): (line: PaymentLine) => string {
  const said: { id: string; operation: string | null; below: string }[] = [];
  return (line) => {
    const { id, operation } = line;
    const below = belowLine(line).join("\n");
    const earlier = below === "" ? undefined : said.find((one) => one.id === id && one.below === below);
    // A line that only refers to the explanation also moves it further away.
    said.unshift({ id, operation, below: earlier === undefined ? below : "" });
    said.length = Math.min(said.length, mostBetween);
    const same = `         ${paint.soft(`as ${earlier?.operation ?? "it"} above`)}`;
    return [headOf(line), ...(earlier !== undefined ? [same] : below === "" ? [] : [below])].join("\n");
  };
}

function headOf(line: PaymentLine): string {
  const { time, operation, network, payer, payerName, amount, token, outcome, status, reason, transaction } =
    line;
  const words = [
    new Date(time).toTimeString().slice(0, 8),
    (operation ?? "request").padEnd(7),
    (network ?? "-").padEnd(16),
    (payerName ?? (payer === null ? "-" : shortenHex(payer))).padEnd(16),
    (amount === null ? "-" : formatAmount(amount, token)).padEnd(14),
    operation === "shop" && line.message === null
      ? outcome
      : paintOutcome(outcome, reason === null ? outcome : `${outcome}: ${reason}`),
    ...(status === null || status === 200 ? [] : [`(${status})`]),
    ...(transaction === null ? [] : [shortenHex(transaction)]),
    ...(line.tookMs === null ? [] : [`${Math.round(line.tookMs)} ms`]),
  ];
  return escapeControls(words.join(" "));
}

/** The problem, what to do, and where to read more. */
function belowLine({ message, fix, more }: PaymentLine): readonly string[] {
  return [
    ...(message === null ? [] : [`         ${paint.soft("why:")} ${withoutAdvice(message, fix ?? "")}`]),
    ...(fix === null || fix === "" ? [] : [`         ${paint.advice("fix:")} ${fix}`]),
    ...(more === null || more === "" ? [] : [`         ${paint.soft(`more: ${more}`)}`]),
  ].map(escapeControls);
}

export function paintOutcome(outcome: string, text = outcome): string {
  if (outcome === "valid" || outcome === "settled") return paint.good(text);
  return outcome === "open" || outcome === "pending" ? text : paint.bad(text);
}

/** An explanation with the command in its advice. */
export type Advised = RefusalExplanation & Pick<PaymentLine, "command">;

/** Text that is safe on a command line: a request without a payment may contain anything. */
const oneWord = /^[\w-]+$/;

/**
 * An explanation for a terminal: with commands to paste or run, and a page's URL.
 *
 * @param origin the origin of the service that shows the page and takes commands; undefined if there is none
 */
export function explanationAt(
  explanation: RefusalExplanation,
  {
    network,
    payer,
    amount,
    ...terms
  }: Pick<PaymentSummary, "network" | "payer" | "amount" | "asset" | "token">,
  origin: string | undefined,
): Advised {
  if (origin === undefined) return { ...explanation, command: null };
  const { fix, more } = explanation;
  const isPlain = [network, payer, amount].every((word) => word === null || oneWord.test(word));
  const payment = { ...terms, amount, ...(isPlain ? { network, payer } : { network: null, payer: null }) };
  return {
    ...explanation,
    fix: withWholeCommands(fix, { at: atUrl(origin), ...payment }),
    command: commandIn(fix, { at: ` --url ${origin}`, ...payment }),
    more: errorsSectionAt(more, origin),
  };
}

/** An explanation for programs: its link is always a URL. Without a service, it points to the file in this package. */
export function withLink(explanation: Advised): Advised {
  const [file = "", section] = explanation.more.split("#");
  const more = file === errorsFile ? `${pathToFileURL(packageFile(file))}#${section}` : explanation.more;
  return { ...explanation, more };
}

/** A clause this short may begin entirely different advice: "Sign again". */
const fewWords = 2;

/**
 * Removes the advice at the end of a message if it is shown next to it: responses contain both in one sentence, cut off
 * if too long. It is the same advice if it begins with the same clause.
 */
export function withoutAdvice(message: string, advice: string): string {
  const said = message.replace(/\.\.\.$/, "");
  for (const { index } of said.matchAll(/(?<=[.;:] )/g)) {
    const rest = said.slice(index).replace(/\.$/, "");
    const [clause = ""] = rest.split(/[,;:.]/);
    const isSame = clause.split(" ").length > fewWords && advice.split(/[,;:.]/)[0] === clause;
    if (isSame || advice.includes(rest)) return said.slice(0, index).trimEnd();
  }
  return message;
}

/** The advice and the link for the worst finding. Facts that are already in the message are left out. */
function adviceOn(
  explanations: readonly Advised[],
  message: string | null,
): Pick<PaymentLine, "fix" | "command" | "more"> {
  const [worst] = explanations;
  if (worst === undefined) return { fix: null, command: null, more: null };
  const { at, got, expected, fix, command, more } = worst;
  if (got === null || message?.includes(got) === true) return { fix, command, more };
  const facts =
    expected === null ? `${at === "" ? "got" : `${at}:`} ${got}` : `got ${got}; expected ${expected}`;
  return { fix: `${fix} (${facts})`, command, more };
}

/** Shortens an address or a hash to its beginning and end. */
export function shortenHex(hex: string): string {
  return `${hex.slice(0, 8)}…${hex.slice(-4)}`;
}

/**
 * Completes the commands in the advice, between backticks, so that they can be pasted: with the way this command was
 * called, and the options that this payment needs.
 */
export function withWholeCommands(advice: string, context: AdviceContext): string {
  return advice.replace(/`(x402-kit |up --)([^`]*)`/g, (_, first: string, rest: string) => {
    const words = first === "up --" ? `up --${rest}` : rest;
    return `\`${self} ${words}${optionsOf(words, context) ?? ""}\``;
  });
}

/** The words of the first command in the advice that can be completed for this payment; null if there is none. */
function commandIn(advice: string, context: AdviceContext): readonly string[] | null {
  for (const [, words = ""] of advice.matchAll(/`x402-kit ([^`]*)`/g)) {
    const options = optionsOf(words, context);
    if (options !== undefined) return [...selfWords, ...`${words}${options}`.split(" ")];
  }
  return null;
}
