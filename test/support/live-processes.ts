import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Returns true if a process is running. A zombie, which has ended but was not reaped, is not. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).charAt(0) !== "Z";
  } catch {
    return true;
  }
}

/** How long ending processes may take on a busy machine, in milliseconds. */
const endingMs = 30_000;

/** Waits until none of the processes is running; returns those that still are when the time is over. */
export async function stillRunningAfter(
  pids: readonly number[],
  timeoutMs: number = endingMs,
): Promise<number[]> {
  const until = Date.now() + timeoutMs;
  let running = pids.filter(isRunning);
  while (running.length > 0 && Date.now() < until) {
    await sleep(20);
    running = running.filter(isRunning);
  }
  return running;
}
