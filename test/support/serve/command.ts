import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { childEnvironment } from "../child-environment.ts";
import { descendantsOf } from "../processes.ts";
import { programFile } from "../programs.ts";
import type { Outcome } from "../run-here.ts";

const bin = programFile("src/cli/bin.ts");

/** How long to wait for a line, in milliseconds; less than a test's timeout. */
const timeoutMs = 25_000;

export type Variables = Readonly<Record<string, string>>;

/** A command of `x402-kit` that runs as a process. Disposal ends it. */
export type RunningCommand = AsyncDisposable & {
  readonly pid: number;
  readonly ended: Promise<Outcome>;
  /** Waits for a line on stderr that matches, and returns it. Throws if the command ends first. */
  logged(pattern: RegExp): Promise<string>;
  /** Like `logged`, on stdout. */
  printed(pattern: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** The pids of the processes that it started. */
  descendants(): readonly number[];
};

/** A new directory, so that a developer's own `.env` is not read. */
export async function makeDirectory(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "x402-kit-serve-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

export function startCommand(args: readonly string[], variables: Variables, cwd: string): RunningCommand {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd,
    env: { ...childEnvironment(), ...variables },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error("the command could not be started");
  let stdout = "";
  let stderr = "";
  let over = false;
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code]): Outcome => {
    over = true;
    return { code, stdout, stderr };
  });
  async function untilLine(text: () => string, pattern: RegExp): Promise<string> {
    const giveUpAt = performance.now() + timeoutMs;
    for (;;) {
      const line = text()
        .split("\n")
        .slice(0, -1)
        .find((one) => pattern.test(one));
      if (line !== undefined) return line;
      if (over) throw new Error(`ended without ${pattern}:\n${stdout}\n${stderr}`);
      if (performance.now() > giveUpAt) {
        // The caller may not have the command yet, so it could not end it.
        child.kill("SIGKILL");
        throw new Error(`said nothing like ${pattern}:\n${stdout}\n${stderr}`);
      }
      await sleep(5);
    }
  }
  return {
    pid,
    ended,
    logged: (pattern) => untilLine(() => stderr, pattern),
    printed: (pattern) => untilLine(() => stdout, pattern),
    kill: (signal) => void child.kill(signal),
    descendants: () => descendantsOf(pid),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Runs a command until it ends, by default in a new directory. */
export async function runCommand(
  args: readonly string[],
  variables: Variables,
  cwd?: string,
): Promise<Outcome> {
  await using directory = await makeDirectory();
  return startCommand(args, variables, cwd ?? directory.path).ended;
}
