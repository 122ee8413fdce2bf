import { escapeControls, renderTable, terminalWidth, wrapText } from "../../util/text.ts";
import type { Exchange } from "../client/case-shop.ts";
import { type ClientResult, type ClientRun, clientVerdicts } from "../client/judge-client.ts";
import { describePayment } from "../scene/offers.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import { type ShopResult, shopVerdicts } from "../shop/run-shop-case.ts";

/**
 * How serious a verdict is.
 * - `wrong`: money moved that should not have, or goods did not;
 * - `differs`: money and goods are right, but an answer is not as it should be;
 * - `not_run`: the case does not apply to what is judged;
 * - `not_judged`: it does, and yet could not be run.
 */
type Level = "good" | "differs" | "wrong" | "not_run" | "not_judged";

/** The result of one case, for reports in every format. */
export type Finding = {
  name: string;
  network: string;
  /** One of `clientVerdicts` or `shopVerdicts`. */
  verdict: string;
  verdictText: string;
  level: Level;
  /** The fate of the judged program. */
  situation: string;
  /** The behaviour of a good program in this situation. */
  safe: string;
  /** Transfers from the payer on chain; amounts in the token's smallest unit. */
  transfers: readonly { network: string; token: string; to: string; amount: string; transaction: string }[];
  /** How often the goods were delivered. */
  services: number;
  /** Every request and its answer, in order. */
  exchanges: readonly string[];
  /** Links to the payments in the studio, if it runs. */
  links: readonly string[];
  notes: readonly string[];
  tookMs: number;
};

/** The findings about a program. */
export type Judgment = {
  /** Its command line, or its URL. */
  subject: string;
  seed: number;
  findings: readonly Finding[];
  /** Why it could not be judged. */
  problem?: string | undefined;
};

/** The exit code of a judgment. What could not be judged counts for more than what differs: it may be wrong. */
export function exitCodeOf({ findings, problem }: Judgment): number {
  const has = (level: Level) => findings.some((finding) => finding.level === level);
  if (has("wrong")) return judgeExitCodes.wrong;
  if (problem !== undefined || has("not_judged")) return judgeExitCodes.notJudged;
  return has("differs") ? judgeExitCodes.differs : judgeExitCodes.good;
}

/** Sorts results by verdict, worst first. */
function worstFirst<Verdict extends string, Result extends { verdict: Verdict }>(
  results: readonly Result[],
  verdicts: Readonly<Record<Verdict, object>>,
): Result[] {
  const order = Object.keys(verdicts);
  return results.toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
}

/** Transfers with their amounts as text. */
function writeTransfers(transfers: readonly TokenTransfer[]): Finding["transfers"] {
  return transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` }));
}

type Run = { tested: { name: string }; network: string; way: string };

/** Makes the names of cases; those that ran on several networks, or by several payment methods, have these in them. */
function nameIn(results: readonly Run[]): (result: Run) => string {
  const networks = new Set(results.map(({ network }) => network)).size > 1;
  const ways = new Set(results.map(({ way }) => way)).size > 1;
  return ({ tested, network, way }) => {
    const where = [...(networks ? [network] : []), ...(ways ? [way] : [])];
    return where.length === 0 ? tested.name : `${tested.name} (${where.join(", ")})`;
  };
}

/** The findings on a client, worst first. */
export function reportClient(results: readonly ClientResult[]): Finding[] {
  const nameOf = nameIn(results);
  return worstFirst(results, clientVerdicts).map((result) => {
    const { tested, network, verdict, transfers, runs, exchanges, links, tookMs } = result;
    const { text, level } = clientVerdicts[verdict];
    return {
      name: nameOf(result),
      network,
      verdict,
      verdictText: text,
      level,
      links,
      tookMs,
      situation: tested.shop,
      safe: tested.safe,
      transfers: writeTransfers(transfers),
      services: runs.filter(({ served }) => served).length,
      exchanges: exchanges.map(describeExchange),
      notes: level === "not_run" ? ["it is bad where nothing is wrong with the shop"] : runs.flatMap(notesOf),
    };
  });
}

function describeExchange({ atMs, request, payment, answer }: Exchange): string {
  const paid = payment === undefined ? "without payment" : describePayment(payment);
  return `+${(atMs / 1_000).toFixed(1)} s  ${request} ${paid} → ${answer}`;
}

/** Notes where the exit code contradicts the facts. */
function notesOf({ end, served }: ClientRun): string[] {
  if (end === undefined) return ["it was ended when its time was over"];
  if (served && end.code !== 0) return [`it got the goods, and exited with ${end.code ?? end.signal}`];
  if (!served && end.code === 0) return ["it got nothing, and exited with 0"];
  return [];
}

/** The findings on a shop, worst first. */
export function reportShop(results: readonly ShopResult[]): Finding[] {
  const nameOf = nameIn(results);
  return worstFirst(results, shopVerdicts).map((result) => {
    const { tested, network, verdict, transfers, services, exchanges, links, notes, tookMs } = result;
    const { text, level } = shopVerdicts[verdict];
    return {
      name: nameOf(result),
      network,
      verdict,
      verdictText: text,
      level,
      situation: tested.situation,
      safe: tested.good,
      transfers: writeTransfers(transfers),
      services,
      exchanges,
      links,
      notes,
      tookMs,
    };
  });
}

/** The report for a person: a table, worst first, then for each bad case the requests and the safe behaviour. */
export function renderJudgment({ subject, findings, seed }: Judgment, where: string): string {
  return [
    `${subject} on ${where}`,
    "",
    ...renderTable(
      ["case", { right: "paid" }, { right: "had" }, "verdict"],
      findings.map(({ name, transfers, services, verdictText, level }) => [
        name,
        `${transfers.length}`,
        `${services}`,
        level === "wrong" ? inCapitals(verdictText) : verdictText,
      ]),
    ).split("\n"),
    ...findings.filter(isBad).flatMap(renderBad),
    "",
    ...summarize(findings, seed),
  ]
    .map(escapeControls)
    .join("\n");
}

/** How many cases ran and with what result, and why the others did not. */
function summarize(findings: readonly Finding[], seed: number): string[] {
  const ran = findings.filter(hasRun).length;
  const count = (level: Level) => findings.filter((finding) => finding.level === level).length;
  const bad = [
    ...(count("wrong") > 0
      ? [`${count("wrong")} of ${ran} cases ${count("wrong") === 1 ? "is" : "are"} bad`]
      : []),
    ...(count("differs") > 0
      ? [`${count("differs")} of ${ran} cases ${count("differs") === 1 ? "differs" : "differ"}`]
      : []),
  ];
  const good = ran === 1 ? "The one case is good." : `All ${ran} cases are good.`;
  const allGood = ran === findings.length ? good : `${ran} of ${findings.length} cases ran, and are good.`;
  const left = Map.groupBy(
    findings.filter((finding) => !hasRun(finding)),
    ({ notes }) => notes.join("; "),
  );
  return [
    bad.length === 0 ? allGood : `${bad.join(", ")}. The same run again: --seed ${seed}`,
    ...[...left].flatMap(([why, some]) =>
      wrapText(`Not run: ${some.map(({ name }) => name).join(", ")}: ${why}`, terminalWidth),
    ),
  ];
}

function hasRun({ level }: Finding): boolean {
  return level !== "not_run" && level !== "not_judged";
}

/** Returns true if there is something to say of a case that ran. */
export function isBad({ level }: Finding): boolean {
  return level === "wrong" || level === "differs";
}

/** The short form of a verdict for the table; the full one is below it. */
function inCapitals(verdict: string): string {
  return verdict.replace(/ (although|than) .*/, "").toUpperCase();
}

function renderBad({ name, verdictText, situation, safe, exchanges, links, notes }: Finding): string[] {
  const indent = (text: string, by: string) =>
    wrapText(text, terminalWidth - by.length).map((line) => `${by}${line}`);
  return [
    "",
    `${name}: ${verdictText}`,
    ...indent(situation, "  "),
    ...foldRepeats(exchanges).flatMap((line) => {
      const [first = "", ...others] = wrapText(line, terminalWidth - 12);
      return [`    ${first}`, ...others.map((other) => `            ${other}`)];
    }),
    ...links.map((link, index) => `    payment ${index + 1} in the studio: ${link}`),
    ...notes.flatMap((note) => indent(`(${note})`, "    ")),
    ...indent(`Good: ${safe}`, "  "),
  ];
}

/** The lines below a case's verdict in the other report formats. */
export function describeFinding({ situation, exchanges, notes, safe }: Finding): string[] {
  return [situation, ...foldRepeats(exchanges), ...notes, `Good: ${safe}`];
}

/** Requests that are equal but for their time are one line, with their number and the time of the last. */
export function foldRepeats(exchanges: readonly string[]): string[] {
  const folded: { line: string; what: string; times: number; last: string }[] = [];
  for (const line of exchanges) {
    const [, last = "", what = line] = /^(\+\S+ s) {2}(.*)$/.exec(line) ?? [];
    const before = folded.at(-1);
    if (before?.what === what) Object.assign(before, { times: before.times + 1, last });
    else folded.push({ line, what, times: 1, last });
  }
  return folded.map(({ line, times, last }) =>
    times === 1 ? line : `${line} (${times} times, the last at ${last})`,
  );
}

/** Exit codes of the judges of clients, shops and facilitators. The worst finding decides. */
export const judgeExitCodes = { good: 0, wrong: 1, differs: 2, notJudged: 3, usage: 4 } as const;

/** Exit codes when a judge cannot begin. */
export const judgeFailureCodes = { usage: judgeExitCodes.usage, failed: judgeExitCodes.notJudged };

/** The same for `--help`. */
export const judgeExitCodesText =
  "0 all is good; 1 something is wrong; 2 money and goods are right, but answers differ from what is due; 3 it could not be judged, or not to the end; 4 the command line is wrong. Reports are written in each case but the last.";
