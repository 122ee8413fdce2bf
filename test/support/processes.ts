import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** The pids of all running descendants of a process. */
export function descendantsOf(pid: number): number[] {
  const children = process.platform === "linux" ? readProc(pid) : askPs(pid);
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** The command line of a process; empty when there is no such process. */
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
