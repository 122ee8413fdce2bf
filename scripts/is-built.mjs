import { lstatSync, readFileSync } from "node:fs";
import { join } from "node:path";

/*
 * Plain JavaScript: having Node strip types takes 40 ms of a start.
 */

/**
 * Whether files and folders are as they were when `npm run build` noted them in a file: size, time of change, and time
 * of change of the inode, which copying and restoring older files sets too. New files show in the times of their folders.
 */
export function areAsNoted(root, file) {
  try {
    const noted = JSON.parse(readFileSync(file, "utf8"));
    return noted.every(([path, ...then]) => then.join() === lookAt(join(root, path)).join());
  } catch {
    // Nothing was noted, or something is gone.
    return false;
  }
}

/** What is compared of a file or folder. Throws where there is none. */
export function lookAt(path) {
  const { size, mtimeMs, ctimeMs } = lstatSync(path);
  return [size, mtimeMs, ctimeMs];
}
