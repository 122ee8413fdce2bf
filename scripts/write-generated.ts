import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "..");

/**
 * Writes files by their paths in the repository. With `check`, by default if the process was started with `--check`, it
 * writes nothing, and the exit code is 1 if a file differs from what would be written.
 */
export function writeGenerated(
  files: Iterable<readonly [path: string, text: string]>,
  { check = process.argv.includes("--check") }: { check?: boolean } = {},
): void {
  for (const [path, text] of files) {
    const file = join(root, path);
    if (!check) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    } else if (readIfThere(file) !== text) {
      console.error(`${path} is stale: run \`npm run generate\`, and commit the result.`);
      process.exitCode = 1;
    }
  }
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
