import { mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const memory = "/dev/shm";

/**
 * Creates a folder for a test's databases, in memory if there is enough room. Tests kill processes, not machines, and
 * on a disk every commit would wait for it.
 */
export function makeDatabaseFolder(): string {
  const name = "x402-kit-databases-";
  return hasRoom(memory) ? mkdtempSync(join(memory, name)) : mkdtempSync(join(tmpdir(), name));
}

/** Requires 256 MiB, which is more than all concurrent tests use. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= 256 * 1024 * 1024;
  } catch {
    return false;
  }
}
