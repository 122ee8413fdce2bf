import { explainClientError } from "../../observe/explain/explain-client-error.ts";
import { type ErrorCode, errorCodes } from "../../util/error-codes.ts";
import { ConfigurationError, type ConfigurationProblem, KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { asText } from "../../util/text.ts";
import type { Command } from "./command.ts";

/** Why a command failed: `error` in its JSON, and the text on stderr. */
export type Failure = {
  code: ErrorCode;
  message: string;
  /** The messages of its causes, the closest first. */
  because: readonly string[];
  hints: readonly string[];
  /** The command's name, such as `fault list`; empty if there is no such command. */
  command: string;
  /** Everything that is wrong with the command line or variables. */
  problems?: readonly ConfigurationProblem[];
  /** Only for unforeseen errors. */
  stack?: string;
};

export function failureOf(error: unknown, name: string, command: Command | undefined): Failure {
  const base = { because: [], hints: [], command: name };
  if (error instanceof ConfigurationError) {
    const { code, message, problems } = error;
    const isIncomplete = problems.some(({ isMissing }) => isMissing === true);
    const advice = isIncomplete ? command?.adviseOnConfiguration?.() : undefined;
    const hints = [`Options: ${self} ${name} --help`, ...(advice === undefined ? [] : [advice])];
    return { ...base, code, message, hints, problems };
  }
  if (error instanceof KitError) {
    const { code, message, hints } = error;
    const because = causesOf(error);
    // The message is all that says why a TLS handshake failed.
    const known = because.flatMap((text) => explainClientError(text) ?? []);
    const advice = known.map(({ title, fix }) => `${title}. ${fix}`);
    return { ...base, code, message, because, hints: [...hints, ...advice] };
  }
  const code = "unforeseen";
  if (!(error instanceof Error)) return { ...base, code, message: asText(error) };
  const { message, stack = message } = error;
  return { ...base, code, message, stack };
}

function causesOf(error: Error): string[] {
  const causes = [];
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause) {
    if (cause.message !== "") causes.push(cause.message);
  }
  return causes;
}

/** Describes a failure for a person. Unforeseen errors keep their stack, because they are bugs of this package. */
export function describeFailure({ command, message, because, hints, problems, stack }: Failure): string {
  const name = command === "" ? "x402-kit" : `x402-kit ${command}`;
  if (problems !== undefined) {
    const [count, lines] = [problems.length, message.split("\n")];
    return [
      `${name}: ${count === 1 ? "one thing is" : `${count} things are`} wrong`,
      ...lines.map((line) => `  ${line}`),
      "",
      ...hints,
    ].join("\n");
  }
  if (stack !== undefined) return `${name}: unforeseen: ${stack}`;
  const lines = [
    `${name}: ${message}`,
    ...because.map((cause) => `  because: ${cause}`),
    ...hints.map((hint) => `  ${hint}`),
  ];
  // A message may contain text from others, which must not look like a line of its own.
  return lines.map((line) => line.replaceAll("\n", "\n    ")).join("\n");
}

/** The exit code for a failure. The judges have their own, since their 1 and 2 are verdicts. */
export function exitCodeOf({ code }: Failure, command: Command | undefined): number {
  const { exit } = errorCodes[code];
  const own = command?.failureCodes;
  if (own === undefined) return exit;
  return code === "configuration" ? own.usage : own.failed;
}
