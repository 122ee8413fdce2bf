import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { completeLockfile } from "./lockfile.ts";

/*
 * Adds the hashes of packages that the lockfile lacks, from the public registry. Fails if one cannot be confirmed.
 */

const file = join(import.meta.dirname, "../package-lock.json");
try {
  const { text, added } = await completeLockfile(readFileSync(file, "utf8"));
  if (added.length > 0) writeFileSync(file, text);
  for (const name of added) console.log(`${name} has its integrity now`);
  if (added.length > 0)
    console.log("Commit package-lock.json, and take them off the list in scripts/lockfile.ts");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
