import { main } from "../../src/cli/main.ts";
import { childEnvironment } from "./child-environment.ts";

/** How a command ended, and its output. */
export type Outcome = { code: number | null; stdout: string; stderr: string };

/**
 * Runs a command of `x402-kit` until it ends, within this process: starting a process takes longer than most commands
 * do. Not for tests about processes: signals, stdin, what is left behind.
 */
export async function runHere(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  let stdout = "";
  let stderr = "";
  const code = await main(args, {
    print(text) {
      stdout += `${text}\n`;
    },
    printError(text) {
      stderr += `${text}\n`;
    },
    env: { ...childEnvironment(), ...variables },
    takeSignals: () => new AbortController().signal,
  });
  return { code, stdout, stderr };
}

/** The options, variables and networks that are reported as wrong, in order. */
export function problemsIn(stderr: string): readonly string[] {
  return stderr.match(/(?<=^ {2})\S+(?=: )/gm) ?? [];
}
