import { KitError } from "../../util/errors.ts";
import { lastLines } from "../scene/last-lines.ts";
import { describeEnd } from "../scene/run-command.ts";
import type { JudgeClientOptions } from "./client-options.ts";
import type { ClientResult } from "./run-client-case.ts";

/**
 * Requires that a client buys from a working shop.
 *
 * @throws {KitError} says what the client failed to do, with the end of its output
 */
export function requireWorkingClient(result: ClientResult, options: JudgeClientOptions): void {
  const problem = problemOf(result, options);
  if (problem === undefined) return;
  throw new KitError(problem, {
    hints: [
      ...lastLines(result.runs.flatMap(({ stdout, stderr }) => [stdout, stderr])),
      "It must fetch X402_URL, pay with X402_PRIVATE_KEY when asked, print the body or save it in X402_OUTPUT, and exit with 0.",
    ],
  });
}

function problemOf(
  { verdict, runs: [run], exchanges, transfers }: ClientResult,
  { timeoutMs, versions }: JudgeClientOptions,
): string | undefined {
  if (run === undefined) return undefined;
  const { end, served } = run;
  const shown = end === undefined ? "" : describeEnd(end);
  const asked = exchanges.length > 0;
  if (end === undefined && transfers.length <= 1) {
    const what = asked ? "" : ", and never asked the shop";
    return `The command still ran after ${timeoutMs / 1_000} s${what}; it was ended`;
  }
  if (!asked) return `The command ended ${shown} and never asked the shop at X402_URL`;
  if (verdict === "not_paid_not_served") {
    const paid = exchanges.some(({ payment }) => payment !== undefined);
    if (paid) return `The command's payment was refused (${exchanges.at(-1)?.answer}), and it ended ${shown}`;
    const spoken = versions.map((version) => `v${version}`).join(" and ");
    return `The command asked the shop, which speaks ${spoken}, and did not pay; it ended ${shown}`;
  }
  if (verdict === "paid_not_served") {
    return `The command paid, and printed nothing of what it got; it ended ${shown}`;
  }
  if (served && end !== undefined && end.code !== 0) {
    return `The command got what it paid for, and yet ended ${shown}: it must exit with 0`;
  }
  return undefined;
}
