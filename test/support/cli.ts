import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { childEnvironment } from "./child-environment.ts";
import { isRunning, stillRunningAfter } from "./live-processes.ts";
import { descendantsOf } from "./processes.ts";
import { programFile } from "./programs.ts";

/** How a process ended. */
export type End = { code: number | null; signal: NodeJS.Signals | null };

/** A running `x402-kit`. Disposal ends it and everything it started. */
export type CliProcess = AsyncDisposable & {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** Waits until stdout matches. Throws with the whole output if the process ends first, or takes too long. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<End>;
  /** The pids of the processes that it started, as far as they were seen. */
  descendants(): ReadonlySet<number>;
  /** The processes and temporary files that remain after its end, once processes had time to end. */
  leftovers(): Promise<{ processes: number[]; files: string[] }>;
};

/** Less than a test's timeout, so that the test can still clean up and report the output. */
const printTimeoutMs = 50_000;

const running = new Set<ChildProcess>();

/** Ends the commands of a test that timed out before it could dispose of them. */
export function killCommands(): void {
  for (const child of running) child.kill("SIGKILL");
}

export const repository = fileURLToPath(new URL("../..", import.meta.url));
/** The program, for tests that start it without {@link startCli}. */
export const bin = programFile("src/cli/bin.ts");

/** Starts `x402-kit` as a process, as a user would, with only the given variables. */
export function startCli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliProcess> {
  return start(process.execPath, [bin, ...args], { env });
}

/** Like {@link startCli}, in a process with a limit on open files and connections. */
export function startCliWithFiles(openFiles: number, args: readonly string[]): Promise<CliProcess> {
  return start("sh", ["-c", `ulimit -n ${openFiles} && exec "$0" "$@"`, process.execPath, bin, ...args], {});
}

/** Starts an npm script in its own process group, as a terminal does; `kill` then acts like Ctrl-C. */
export function startNpmScript(args: readonly string[]): Promise<CliProcess> {
  return start("npm", args, { ownGroup: true });
}

/** Starts `npx --no-install x402-kit` in a folder with the package installed. `kill` ends only npx, as a supervisor does. */
export async function startWithNpx(folder: string, args: readonly string[]): Promise<CliProcess> {
  await installCommand(folder);
  return start("npx", ["--no-install", "x402-kit", ...args], { cwd: folder });
}

export function startScript(
  folder: string,
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<CliProcess> {
  return start("bash", [script], { cwd: folder, env });
}

/** Puts the command into a folder, as an installation of the package does. */
export async function installCommand(folder: string): Promise<void> {
  const bins = join(folder, "node_modules/.bin");
  await mkdir(bins, { recursive: true });
  const command = `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`;
  // By its own name, and by the package's name, which npx looks for.
  for (const name of ["x402-kit", "x402-facilitator-kit"]) {
    await writeFile(join(bins, name), command, { mode: 0o755 });
  }
  await writeFile(join(folder, "package.json"), '{"name":"shop","private":true}');
}

/** Starts a program with only the given variables. */
export async function start(
  file: string,
  args: readonly string[],
  {
    env = {},
    ownGroup = false,
    cwd = repository,
  }: { env?: Readonly<Record<string, string>>; ownGroup?: boolean; cwd?: string },
): Promise<CliProcess> {
  const directory = await mkdtemp(join(tmpdir(), "x402-kit-test-"));
  const child = spawn(file, args, {
    cwd,
    env: {
      ...childEnvironment(),
      TMPDIR: directory,
      ...env,
    },
    detached: ownGroup,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  let over = false;
  running.add(child);
  const ended = once(child, "close").then(([code, signal]): End => {
    over = true;
    running.delete(child);
    return { code, signal };
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${file} could not be started`);

  const seen = new Set<number>();
  const look = () => {
    for (const started of descendantsOf(pid)) seen.add(started);
  };
  const watching = setInterval(look, 20);
  ended.finally(() => clearInterval(watching));

  return {
    pid,
    stdout: () => stdout,
    stderr: () => stderr,
    async printed(pattern) {
      const started = performance.now();
      for (;;) {
        const match = pattern.exec(stdout);
        if (match !== null) return match;
        if (over || performance.now() - started > printTimeoutMs) {
          throw new Error(`did not print ${pattern}\nstdout: ${stdout}\nstderr: ${stderr}`);
        }
        await sleep(5);
      }
    },
    kill(signal) {
      // Processes that it has just started would be hard to find later.
      look();
      process.kill(ownGroup ? -pid : pid, signal);
    },
    ended,
    descendants() {
      look();
      return seen;
    },
    async leftovers() {
      const processes = await stillRunningAfter([...seen]);
      return { processes, files: await readdir(directory) };
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      const tooLong = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await ended;
      clearTimeout(tooLong);
      for (const left of await stillRunningAfter([...seen])) {
        if (isRunning(left)) process.kill(left, "SIGKILL");
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Runs `x402-kit` until it ends. */
export async function runCli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<End & { stdout: string; stderr: string; started: number }> {
  await using cli = await startCli(args, env);
  const end = await cli.ended;
  return { ...end, stdout: cli.stdout(), stderr: cli.stderr(), started: cli.descendants().size };
}
