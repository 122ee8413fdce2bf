import { plural } from "../../deploy/units.ts";
import type { Check, CheckStatus } from "../../inspection/check.ts";
import type { Examination } from "./examination.ts";

const words: Readonly<Record<CheckStatus, string>> = { ok: "ok", warning: "warn", failed: "FAIL" };

/** An examination as a person reads it: a line for each check, and below what failed, what to do about it. */
export function renderExamination({ safe, parts }: Examination): string {
  const checks = parts.flatMap((part) => part.checks);
  const width = Math.max(...checks.map(({ name }) => name.length));
  const count = (status: CheckStatus) => checks.filter((check) => check.status === status).length;
  const line = ({ name, status, detail, advice }: Check) => {
    const indent = " ".repeat(2 + 4 + 2 + width + 2);
    const first = `  ${words[status].padEnd(4)}  ${name.padEnd(width)}  ${detail}`;
    return status === "ok" || advice === undefined ? first : `${first}\n${indent}→ ${advice}`;
  };
  const blocks = parts.map((part) => [part.name, ...part.checks.map(line)].join("\n"));
  const warnings = count("warning") > 0 ? ` ${plural(count("warning"), "warning")}.` : "";
  const verdict = safe
    ? `All is well: serve may be started.${warnings}`
    : `${count("failed")} of ${plural(checks.length, "check")} failed: serve would not be safe.${warnings}`;
  return `${blocks.join("\n\n")}\n\n${verdict}`;
}
