import { statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Check, warning } from "./check.ts";

/** Bytes: some 300,000 settlements. A full disk stops every settle. */
const fewBytes = 2 ** 30;

/** Warns if the disk of an SQLite file is nearly full; undefined otherwise and for Postgres. */
export function checkDiskSpace(
  databaseUrl: string,
  { freeBytes = readFreeBytes }: { freeBytes?: (folder: string) => number | undefined } = {},
): readonly Check[] {
  const file = databaseUrl.startsWith("sqlite:") ? databaseUrl.slice("sqlite:".length) : undefined;
  if (file === undefined || file === ":memory:") return [];
  const folder = dirname(resolve(file));
  const free = freeBytes(folder);
  if (free === undefined || free >= fewBytes) return [];
  return [
    warning(
      "disk",
      `${Math.floor(free / 2 ** 20)} MiB are free in ${folder}; on a full disk no payment can be settled`,
      "Make room, or move the file of DATABASE_URL to a larger disk while serve is stopped.",
    ),
  ];
}

/** Undefined if the folder is missing, which another check reports. */
function readFreeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
