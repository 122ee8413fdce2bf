import { type ChildProcess, execFileSync } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";

/** The pids of all running descendants of a process. */
export function descendantsOf(pid: number): number[] {
  const children = process.platform === "linux" ? readProc(pid) : askPs(pid);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Records the processes that this process starts from now on. The returned function ends that; it returns command lines. */
export function noteStarted(): () => string[][] {
  const children: ChildProcess[] = [];
  const note = (message: unknown) => children.push((message as { process: ChildProcess }).process);
  subscribe("child_process", note);
  return () => {
    unsubscribe("child_process", note);
    return children.map(({ spawnargs }) => spawnargs);
  };
}

/** The command line of a process; empty if there is no such process. */
export function commandOf(pid: number): string {
  try {
    return process.platform === "linux"
      ? readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")
      : execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return "";
  }
}

function readProc(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
    );
  } catch {
    // It has ended in the meantime.
    return [];
  }
}

function askPs(pid: number): number[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return lines.flatMap((line) => {
    const [child, parent] = line.trim().split(/\s+/).map(Number);
    return child !== undefined && parent === pid ? [child] : [];
  });
}
