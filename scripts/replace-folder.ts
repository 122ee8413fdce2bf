import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Replaces a folder. The new one is filled next to the old one and takes its place when it is complete, so a run that
 * fails or is interrupted leaves the old one unchanged, and readers never see half a folder. Concurrent runs each fill
 * their own folder; the last one to finish wins.
 */
export async function replaceFolder(folder: string, fill: (made: string) => Promise<void>): Promise<void> {
  removeLeftovers(folder);
  const [made, old] = [`${folder}-new-${process.pid}`, `${folder}-old-${process.pid}`];
  mkdirSync(made);
  try {
    await fill(made);
    replace(folder, { made, old });
  } finally {
    for (const left of [made, old]) rmSync(left, { recursive: true, force: true });
  }
}

function replace(folder: string, { made, old }: { made: string; old: string }): void {
  for (;;) {
    try {
      renameSync(folder, old);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
    try {
      renameSync(made, folder);
      return;
    } catch (error) {
      // Another run finished in between; its folder is replaced too.
      if (codeOf(error) !== "ENOTEMPTY") throw error;
      rmSync(old, { recursive: true, force: true });
    }
  }
}

/** Removes the folders of interrupted runs, whose process has ended. */
function removeLeftovers(folder: string): void {
  const ofRun = new RegExp(`^${basename(folder)}-(?:new|old)-(\\d+)$`);
  for (const name of readdirSync(dirname(folder))) {
    const pid = ofRun.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid)))
      rmSync(join(dirname(folder), name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
