import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { isRunning, stillRunningAfter } from "../../test/support/live-processes.ts";
import { processStartTime, startWatchdog } from "./watchdog.ts";

const forever = "setInterval(() => {}, 1000)";

/** A process that runs until it is ended. */
async function startProcess(script = forever): Promise<{ child: ChildProcess; pid: number }> {
  const child = spawn(process.execPath, ["--eval", `${script}; console.log("ready")`], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  if (child.pid === undefined) throw new Error("the process did not start");
  return { child, pid: child.pid };
}

async function exitOf({ child }: { child: ChildProcess }): Promise<unknown> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.signalCode ?? child.exitCode;
}

// A closed watchdog does what one without its parent does: it learns of both by the end of the pipe.
describe.concurrent.each([
  { kind: "a shell", hasShell: true },
  { kind: "a Node process", hasShell: false },
])("a watchdog that has lost its parent, which is $kind,", ({ hasShell }) => {
  it("ends what it guards, and itself", async () => {
    const watchdog = startWatchdog(hasShell);
    const [first, second] = [await startProcess(), await startProcess()];
    watchdog.guard(first.pid);
    watchdog.guard(second.pid);
    await watchdog.close();
    expect(await exitOf(first)).toBe("SIGTERM");
    expect(await exitOf(second)).toBe("SIGTERM");
    expect(await stillRunningAfter([watchdog.pid ?? 0], 0)).toEqual([]);
  });

  it("kills what does not end when asked to", async () => {
    const watchdog = startWatchdog(hasShell);
    const stubborn = await startProcess(`process.on("SIGTERM", () => {}); ${forever}`);
    watchdog.guard(stubborn.pid);
    await watchdog.close();
    expect(await exitOf(stubborn)).toBe("SIGKILL");
  });

  it.runIf(process.platform !== "win32")("ends a group, of which the first may have ended", async () => {
    const watchdog = startWatchdog(hasShell);
    const heirs: number[] = [];
    for (const leader of ["sleep 100 & echo $!; wait", "sleep 100 & echo $!"]) {
      const shell = spawn("/bin/sh", ["-c", leader], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
      if (shell.pid === undefined) throw new Error("the shell did not start");
      watchdog.guardGroup(shell.pid);
      const [printed] = await once(shell.stdout, "data");
      heirs.push(Number(printed));
    }
    expect(heirs.filter(isRunning)).toEqual(heirs);
    await watchdog.close();
    expect(await stillRunningAfter(heirs)).toEqual([]);
  });

  it("leaves alone what it was never given, and what was released", async () => {
    const watchdog = startWatchdog(hasShell);
    const [stranger, released] = [await startProcess(), await startProcess()];
    for (const guard of [watchdog.guard, watchdog.guardGroup]) {
      guard(released.pid);
      watchdog.release(released.pid);
    }
    await watchdog.close();
    expect([stranger.pid, released.pid].filter(isRunning)).toEqual([stranger.pid, released.pid]);
    for (const { child } of [stranger, released]) child.kill("SIGKILL");
  });

  it.runIf(existsSync("/proc/self/stat"))("leaves alone who has got the pid of what it guarded", async () => {
    const watchdog = startWatchdog(hasShell);
    const successor = await startProcess();
    watchdog.guard(successor.pid, `${Number(processStartTime(successor.pid)) - 1}`);
    await watchdog.close();
    await sleep(100);
    expect(isRunning(successor.pid)).toBe(true);
    successor.child.kill("SIGKILL");
  });
});

describe.concurrent.each([
  { kind: "a shell", hasShell: true },
  { kind: "a Node process", hasShell: false },
])("a watchdog, which is $kind,", ({ hasShell }) => {
  it("stays when it is signalled: what ends its parent must not take the guard away first", async () => {
    const watchdog = startWatchdog(hasShell);
    const guarded = await startProcess();
    watchdog.guard(guarded.pid);
    await untilSignalsAreHandled(watchdog.pid ?? 0, hasShell);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(watchdog.pid ?? 0, signal);
    await sleep(100);
    expect(isRunning(watchdog.pid ?? 0)).toBe(true);
    await watchdog.close();
    expect(await exitOf(guarded)).toBe("SIGTERM");
  });

  it("can be closed again, and told things after it is gone", async () => {
    const watchdog = startWatchdog(hasShell);
    await Promise.all([watchdog.close(), watchdog.close()]);
    watchdog.guard(process.pid);
    watchdog.release(process.pid);
    await watchdog.close();
  });
});

/** Waits until a watchdog has its signal handlers: at load, a Node process takes seconds to start. */
async function untilSignalsAreHandled(pid: number, hasShell: boolean): Promise<void> {
  const status = `/proc/${pid}/status`;
  // Other systems do not tell.
  if (!existsSync(status)) return sleep(500);
  // A shell ignores them. Node catches SIGTERM by itself, but not SIGHUP, which may be ignored from the start.
  const [mask, signal] = hasShell
    ? ["SigIgn", constants.signals.SIGTERM]
    : ["SigCgt", constants.signals.SIGHUP];
  const isHandled = () => {
    const [, bits = "0"] = new RegExp(`^${mask}:\\s*(\\w+)$`, "m").exec(readFileSync(status, "utf8")) ?? [];
    return ((BigInt(`0x${bits}`) >> BigInt(signal - 1)) & 1n) === 1n;
  };
  while (!isHandled()) await sleep(20);
}
