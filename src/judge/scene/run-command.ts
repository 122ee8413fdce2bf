import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { KitError } from "../../util/errors.ts";
import { closeAtOnce, http, listenOnLoopback } from "../../util/node-http.ts";
import { startWatchdog } from "../../util/watchdog.ts";

/** The limit for a command's output, in characters. */
const mostOutput = 1_000_000;

/** The time between SIGTERM and SIGKILL. */
const endGraceMs = 500;

/** How long the output may stay open after the command has ended. */
const outputGraceMs = 250;

/** A running command in its own process group. The group is killed on disposal and when this process ends. */
export type RunningCommand = Awaited<ReturnType<typeof startCommand>>;

export type CommandEnd = { code: number | null; signal: NodeJS.Signals | null };

/** Describes how a command ended, as the end of a sentence. */
export function describeEnd({ code, signal }: CommandEnd): string {
  return code === null ? `by ${signal}` : `with exit code ${code}`;
}

/** @throws {KitError} if it cannot be started */
export async function startCommand(command: readonly string[], env: Readonly<Record<string, string>>) {
  const [file = "", ...args] = command;
  const watchdog = startWatchdog();
  const child = spawn(file, args, {
    env: { ...process.env, ...env },
    detached: process.platform !== "win32",
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
  });
  if (child.pid !== undefined) watchdog.guardGroup(child.pid);
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const ended = once(child, "exit").then(([code, signal]): CommandEnd => ({ code, signal }));
  ended.catch(() => {});
  // Processes that the command started may keep its output open.
  const closed = once(child, "close");
  closed.catch(() => {});
  const outputEnded: Promise<unknown> = ended.then(() => Promise.race([closed, sleep(outputGraceMs)]));
  outputEnded.catch(() => {});
  try {
    await once(child, "spawn");
  } catch (cause) {
    await watchdog.close();
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    const why =
      code === "ENOENT" ? "there is no such program" : code === "EACCES" ? "it is not executable" : "";
    throw new KitError(`The command could not be started: ${file}${why === "" ? "" : `: ${why}`}`, { cause });
  }
  return {
    stdout,
    stderr,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    /** Resolves when the command itself has ended. Its children may run on until disposal. */
    ended,
    /** Resolves when all output was read, at most `outputGraceMs` after the command ended. */
    outputEnded,
    async [Symbol.asyncDispose]() {
      signalGroup(child, "SIGTERM");
      for (let waited = 0; waited < endGraceMs && groupRuns(child); waited += 20) await sleep(20);
      signalGroup(child, "SIGKILL");
      await ended;
      if (child.pid !== undefined) watchdog.release(child.pid);
      await watchdog.close();
      // Descendants that left the group may hold the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    },
  };
}

/** Waits for a command to end. Returns undefined if it does not end in time. */
export async function endWithin(
  command: RunningCommand,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<CommandEnd | undefined> {
  const timer = new AbortController();
  const abort = () => timer.abort();
  signal?.addEventListener("abort", abort);
  try {
    const tooLate = sleep(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined);
    return await Promise.race([command.ended, tooLate]);
  } finally {
    timer.abort();
    signal?.removeEventListener("abort", abort);
    signal?.throwIfAborted();
  }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (part: string) => {
    if (text.length < mostOutput) text += part;
  });
  return () => text;
}

/** Signals the command and everything it started, if the platform has process groups. */
function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  if (process.platform === "win32") child.kill(signal);
  else tryKill(-child.pid, signal);
}

function groupRuns({ pid, exitCode, signalCode }: ChildProcess): boolean {
  if (pid === undefined) return false;
  if (process.platform === "win32") return exitCode === null && signalCode === null;
  return tryKill(-pid, 0);
}

/** Returns true if there was a process to signal. */
function tryKill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Enough for a Node stack trace with its cause and some output before it. */
const mostLines = 20;
const mostCharacters = 200;

/** The end of a command's output, as hints below an error; long enough to include the message above a stack trace. */
export function lastLines(printed: readonly string[]): string[] {
  return printed
    .flatMap((text) => text.split("\n"))
    .filter((line) => line.trim() !== "")
    .slice(-mostLines)
    .map((line) => `  ${line.slice(0, mostCharacters)}`);
}

/** Returns a port that is currently free. */
export async function freePort(): Promise<number> {
  const server = http.createServer();
  const port = await listenOnLoopback(server);
  await closeAtOnce(server);
  return port;
}
