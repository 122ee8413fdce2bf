import { execFile } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

/*
 * Orphans are nodes whose owner was killed together with its watchdog. A node carries its owner's pid in its process name
 * (argv[0]). The kernel keeps that exactly as long as the process, so there is no pid file to write, find and clean up.
 */

const namePattern = /^anvil-of-x402-kit-([1-9]\d*)$/;

/** The time between SIGTERM and SIGKILL. */
const endGraceMs = 500;

export const nodeName = `anvil-of-x402-kit-${process.pid}`;

/** A process with the first word of its command line. */
type NamedProcess = { pid: number; name: string };

/**
 * Ends nodes that an earlier process left behind. A node is left behind if no process has its owner's pid. If another
 * process reuses that pid, the node stays until that one has exited too.
 *
 * @returns the pids of the ended nodes. Never throws: processes that cannot be inspected are left alone. Does nothing on
 *   Windows.
 */
export async function endOrphans(): Promise<readonly number[]> {
  const orphans = (await listProcesses()).filter(isOrphan);
  let left = orphans.filter((orphan) => signal(orphan, "SIGTERM"));
  const ended = left.map(({ pid }) => pid);
  for (let waited = 0; left.length > 0 && waited < endGraceMs; waited += 20) {
    await sleep(20);
    // Compare names too: the pid may have been reused by now.
    const running = await listProcesses();
    left = left.filter((orphan) =>
      running.some(({ pid, name }) => pid === orphan.pid && name === orphan.name),
    );
  }
  for (const orphan of left) signal(orphan, "SIGKILL");
  return ended;
}

function isOrphan({ pid, name }: NamedProcess): boolean {
  const owner = namePattern.exec(name)?.[1];
  return owner !== undefined && !exists(Number(owner)) && isInOurNamespace(pid);
}

async function listProcesses(): Promise<readonly NamedProcess[]> {
  try {
    if (process.platform === "win32") return [];
    return process.platform === "linux" ? readProc() : await askPs();
  } catch {
    return [];
  }
}

function readProc(): NamedProcess[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const [name = ""] = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0", 1);
      return [{ pid: Number(entry), name }];
    } catch {
      // It has exited in the meantime.
      return [];
    }
  });
}

async function askPs(): Promise<NamedProcess[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axww", "-o", "pid=,command="]);
  return stdout.split("\n").flatMap((line) => {
    const [, pid, name] = /^\s*(\d+)\s+(\S+)/.exec(line) ?? [];
    return name === undefined ? [] : [{ pid: Number(pid), name }];
  });
}

/** Pids can only be compared within a namespace: in another container, the owner's pid means another process. */
function isInOurNamespace(pid: number): boolean {
  if (process.platform !== "linux") return true;
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync("/proc/self/ns/pid");
  } catch {
    return false;
  }
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: it exists, but belongs to another user.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Returns false if the process has exited or belongs to another user. */
function signal({ pid }: NamedProcess, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
