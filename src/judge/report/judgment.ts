import type { NetworkName } from "../../protocol/networks.ts";
import { escapeXml, renderJunitXml } from "../../util/junit.ts";
import { renderTable, terminalWidth, wrapText } from "../../util/table.ts";
import { escapeControls } from "../../util/text.ts";
import type { Exchange } from "../client/case-shop.ts";
import { type ClientResult, type ClientRun, clientVerdicts, isGoodVerdict } from "../client/judge-client.ts";
import { describePayment } from "../scene/offers.ts";
import type { TokenTransfer } from "../scene/scene.ts";
import { type ShopResult, shopVerdicts } from "../shop/run-shop-case.ts";

/** The result of one case, for reports in every format. */
export type Finding = {
  name: string;
  network: string;
  /** One of `clientVerdicts` or `shopVerdicts`. */
  verdict: string;
  verdictText: string;
  isGood: boolean;
  /** What happened to the judged program. */
  situation: string;
  /** What a good program does in this situation. */
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

/** Sorts results by verdict, worst first. */
function worstFirst<Verdict extends string, Result extends { verdict: Verdict }>(
  results: readonly Result[],
  verdicts: Readonly<Record<Verdict, string>>,
): Result[] {
  const order = Object.keys(verdicts);
  return results.toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
}

/** Transfers with their amounts as text. */
function writeTransfers(transfers: readonly TokenTransfer[]): Finding["transfers"] {
  return transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` }));
}

/** The findings on a client, worst first. */
export function reportClient(results: readonly ClientResult[]): Finding[] {
  const networks = new Set(results.map(({ network }) => network));
  return worstFirst(results, clientVerdicts).map((result) => {
    const { tested, network, verdict, transfers, runs, exchanges, links, tookMs } = result;
    return {
      name: networks.size > 1 ? `${tested.name} (${network})` : tested.name,
      ...{ network, verdict, links, tookMs },
      verdictText: clientVerdicts[verdict],
      isGood: isGoodVerdict(verdict),
      situation: tested.shop,
      safe: tested.safe,
      transfers: writeTransfers(transfers),
      services: runs.filter(({ served }) => served).length,
      exchanges: exchanges.map(describeExchange),
      notes: runs.flatMap(notesOf),
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
export function reportShop(results: readonly ShopResult[], network: NetworkName): Finding[] {
  return worstFirst(results, shopVerdicts).map(({ tested, verdict, transfers, ...result }) => ({
    ...result,
    name: tested.name,
    network,
    verdict,
    verdictText: shopVerdicts[verdict],
    isGood: verdict === "good" || verdict === "not_run",
    situation: tested.situation,
    safe: tested.good,
    transfers: writeTransfers(transfers),
  }));
}

/** The report for a person: a table, worst first, then for each bad case the requests and the safe behaviour. */
export function renderJudgment(title: string, findings: readonly Finding[], seed: number): string {
  const bad = findings.filter(({ isGood }) => !isGood);
  return [
    title,
    "",
    ...renderTable(
      ["case", { right: "paid" }, { right: "had" }, "verdict"],
      findings.map(({ name, transfers, services, verdictText, isGood }) => [
        name,
        `${transfers.length}`,
        `${services}`,
        isGood ? verdictText : inCapitals(verdictText),
      ]),
    ).split("\n"),
    ...bad.flatMap(renderBad),
    "",
    bad.length === 0
      ? findings.length === 1
        ? "The one case is good."
        : `All ${findings.length} cases are good.`
      : `${bad.length} of ${findings.length} cases ${bad.length === 1 ? "is" : "are"} bad. The same run again: --seed ${seed}`,
  ]
    .map(escapeControls)
    .join("\n");
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
    ...exchanges.flatMap((line) => {
      const [first = "", ...others] = wrapText(line, terminalWidth - 12);
      return [`    ${first}`, ...others.map((other) => `            ${other}`)];
    }),
    ...links.map((link, index) => `    payment ${index + 1} in the studio: ${link}`),
    ...notes.flatMap((note) => indent(`(${note})`, "    ")),
    ...indent(`Good: ${safe}`, "  "),
  ];
}

/** The report as JUnit XML: a test for each case, in a suite for each network. */
export function renderJudgmentJunit(subject: string, findings: readonly Finding[]): string {
  const suites = Map.groupBy(findings, ({ network }) => network);
  return renderJunitXml(
    `x402 judgment of ${subject}`,
    new Map(
      [...suites].map(([network, ofNetwork]) => [
        network,
        ofNetwork.map(({ name, verdict, tookMs, isGood, verdictText, notes, ...finding }) => ({
          name,
          className: `judge.${verdict}`,
          tookMs,
          ...(!isGood && { failure: { message: verdictText, lines: describe({ ...finding, notes }) } }),
          ...(verdict === "not_run" && { skipped: notes.join("; ") }),
        })),
      ]),
    ),
  );
}

/**
 * The report as SARIF 2.1.0, which code scanning reads: a rule for each case, a result for each bad one.
 *
 * @param file the file that code scanning attaches the results to
 */
export function renderSarif(file: string, findings: readonly Finding[]): string {
  const rules = findings.map(({ name, situation, safe }) => ({
    id: name,
    shortDescription: { text: situation },
    help: { text: safe },
  }));
  const results = findings
    .filter(({ isGood }) => !isGood)
    .map(({ name, verdictText, ...finding }) => ({
      ruleId: name,
      level: "error",
      message: { text: [verdictText, ...describe(finding)].join("\n") },
      locations: [{ physicalLocation: { artifactLocation: { uri: file }, region: { startLine: 1 } } }],
    }));
  return JSON.stringify({
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "x402-kit judge", rules } }, results }],
  });
}

/** A badge for a README: how many cases are good. */
export function renderBadge(findings: readonly Finding[]): string {
  const run = findings.filter(({ verdict }) => verdict !== "not_run");
  const good = run.filter(({ isGood }) => isGood).length;
  const label = "x402 judge";
  const value = `${good} of ${run.length} good`;
  const [left, right] = [label, value].map((text) => 10 + 7 * text.length) as [number, number];
  const color = good === run.length ? "#2e7d32" : "#c62828";
  const text = (x: number, shown: string) => `<text x="${x}" y="14">${escapeXml(shown)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${left + right}" height="20" role="img" aria-label="${label}: ${value}">`,
    `<rect width="${left}" height="20" fill="#444"/>`,
    `<rect x="${left}" width="${right}" height="20" fill="${color}"/>`,
    `<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">`,
    `${text(left / 2, label)}${text(left + right / 2, value)}</g>`,
    "</svg>",
    "",
  ].join("\n");
}

function describe({
  situation,
  exchanges,
  notes,
  safe,
}: Pick<Finding, "situation" | "exchanges" | "notes" | "safe">): string[] {
  return [situation, ...exchanges, ...notes, `Good: ${safe}`];
}
