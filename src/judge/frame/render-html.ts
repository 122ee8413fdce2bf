import { escapeXml } from "./render-junit.ts";
import { describeFinding, hasRun, obstacleOf, type Report, summarize, worstFirst } from "./report.ts";
import type { Finding } from "./run-cases.ts";

const style =
  ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}" +
  "summary{cursor:pointer}pre{white-space:pre-wrap;margin:.3rem 1.2rem 1rem}" +
  "summary::after{content:attr(data-verdict);float:right}.wrong>summary{color:#d33}.differs>summary{color:#b70}" +
  ".not_run>summary,.not_judged>summary,.kit>summary{opacity:.7}";

/** Renders a report as one self-contained page: each case with its verdict; opening a case shows its events. */
export function renderHtml(report: Report): string {
  const { title, about = [] } = report;
  const paragraphs = [...about, ...summarize(report)].map((line) => `<p>${escapeXml(line)}</p>`);
  return [
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`,
    `<title>${escapeXml(title)}</title><style>${style}</style>`,
    `<h1>${escapeXml(title)}</h1>`,
    ...paragraphs,
    ...[...Map.groupBy(worstFirst(report.findings), ({ suite }) => suite)].flatMap(([suite, findings]) => [
      `<h2>${escapeXml(suite)}</h2>`,
      ...findings.map(renderFinding),
    ]),
    "</html>",
    "",
  ].join("\n");
}

function renderFinding(finding: Finding): string {
  const { name, text, level, situation } = finding;
  const lines = hasRun(finding) ? describeFinding(finding) : [situation, obstacleOf(finding)];
  const open = level === "wrong" ? " open" : "";
  return `<details class="${level}"${open}><summary data-verdict="${escapeXml(text)}">${escapeXml(name)}</summary><pre>${lines.map(escapeXml).join("\n")}</pre></details>`;
}
