import { escapeControls } from "../../util/escape-controls.ts";
import { renderTable, terminalWidth, wrapText } from "../../util/table.ts";
import type { Finding } from "./finding.ts";

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
