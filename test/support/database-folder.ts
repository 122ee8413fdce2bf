import { mkdtempSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const memory = "/dev/shm";

/**
 * A new folder for databases of a test: in memory where the system has room for them there. Tests end processes and not
 * machines, and on a disk every commit would wait for it.
 */
export function makeDatabaseFolder(): string {
  const name = "x402-kit-databases-";
  return hasRoom(memory) ? mkdtempSync(join(memory, name)) : mkdtempSync(join(tmpdir(), name));
}

/** Of 256 MiB, which is more than all tests at once take. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= 256 * 1024 * 1024;
  } catch {
    return false;
  }
}
