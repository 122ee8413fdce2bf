import { readFileSync } from "node:fs";

/** Between two looks whether the parents are still there. */
const pollMs = 500;

/**
 * Calls `act` once this process has lost its parent, or that one its own: between npm and a command that it runs is a
 * shell, which SIGTERM to npm ends, and kill -9 does not. Does not keep the process running.
 *
 * @param parentOf for tests
 */
export function onParentEnd(act: () => void, parentOf = readParent): void {
  const { ppid } = process;
  let npm = parentOf(ppid);
  const timer = setInterval(() => {
    const parent = parentOf(ppid);
    npm ??= parent;
    // Where it cannot be told, nothing has ended: a process that may open no more files is not to stop serving.
    const hasChanged = parent !== undefined && parent !== npm;
    if (process.ppid === ppid && !hasChanged) return;
    clearInterval(timer);
    act();
  }, pollMs);
  timer.unref();
}

/** The parent of a process as Linux tells it: "" where there is no such process; undefined where that cannot be read. */
export function readParent(pid: number): string | undefined {
  try {
    // The name of the process is in brackets, and may hold any character.
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[1];
  } catch (error) {
    const code: unknown = Reflect.get(Object(error), "code");
    return code === "ENOENT" || code === "ESRCH" ? "" : undefined;
  }
}
