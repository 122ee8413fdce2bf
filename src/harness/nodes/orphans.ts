import { execFile } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

/*
 * Nodes whose owner was killed together with its watchdog. A node carries its owner's pid in its own name, the first
 * word of its command line: the kernel keeps that as long as the process, and no file has to be written, found and
 * cleaned up for it.
 */

const namePattern = /^anvil-of-x402-kit-([1-9]\d*)$/;

/** Between SIGTERM and SIGKILL. */
const endGraceMs = 500;

export const nodeName = `anvil-of-x402-kit-${process.pid}`;

/** A process, by the first word of its command line. */
type NamedProcess = { pid: number; name: string };

/**
 * Ends nodes that an earlier process has left behind. A node counts as left behind when no process has its owner's pid;
 * where another one has got that pid, the node stays until that has ended too.
 *
 * @returns the pids of what was ended. Never fails: what cannot be looked at is left alone. Does nothing on Windows
 */
export async function endOrphans(): Promise<readonly number[]> {
  const orphans = (await listProcesses()).filter(isOrphan);
  let left = orphans.filter((orphan) => signal(orphan, "SIGTERM"));
  const ended = left.map(({ pid }) => pid);
  for (let waited = 0; left.length > 0 && waited < endGraceMs; waited += 20) {
    await sleep(20);
    // By then a pid may be another's.
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
      // It has ended in the meantime.
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

/** The owner's pid means something among the processes that count as it did: not in another container. */
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
    // Another user's process is one, too.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Returns true if it could be signalled: it may have ended, or be another user's. */
function signal({ pid }: NamedProcess, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}
