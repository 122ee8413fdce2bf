import { renderHtml } from "../../judge/frame/render-html.ts";
import { renderJunit } from "../../judge/frame/render-junit.ts";
import { renderText } from "../../judge/frame/render-text.ts";
import type { Report } from "../../judge/frame/report.ts";
import { flag, textOption } from "./command.ts";
import type { Failure } from "./failure.ts";
import { requireWritable, writeOutput } from "./files.ts";

/** The options for the formats of a report. */
export const reportOptions = {
  json: flag("print the report as JSON"),
  junit: textOption("FILE", "write the report as JUnit XML to a file too", { example: "report.xml" }),
  html: textOption("FILE", "write the report as a web page to a file too", { example: "report.html" }),
} as const;

type Formats = { json: boolean; junit: string | undefined; html: string | undefined };

/**
 * Requires that the files of a report can be written.
 *
 * @throws {ConfigurationError} with each file that cannot be written
 */
export function requireReportFiles({ junit, html }: Formats): void {
  requireWritable({ junit, html });
}

/**
 * Prints and writes a report in every chosen format; returns its exit code.
 *
 * @param error why nothing could be judged, or not everything; added to the JSON
 */
export async function writeReport(
  report: Report,
  { json, junit, html }: Formats,
  print: (text: string) => void,
  error?: Failure,
): Promise<number> {
  if (json) print(JSON.stringify({ ...report.json, error }));
  // The problem itself is printed as an error.
  else if (report.findings.length > 0) print(renderText(report));
  await writeOutput(junit, () => renderJunit(report));
  await writeOutput(html, () => renderHtml(report));
  return report.exitCode;
}
