import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

/*
 * Any user of the machine can create a file in the shared folder for temporary files before we do, so nothing may have a name
 * there that others can guess.
 */
test("everything in the shared folder for temporary files has a random name", () => {
  const files = globSync(["{src,scripts,test,examples,actions}/**/*.{ts,tsx,js,mjs,yml}", "*.{ts,yml}"], {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  });
  const uses = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .filter((line) => /tmpdir\(\)|["'`:=]\/tmp\b/.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(uses.length).toBeGreaterThan(40);
  expect(
    uses.filter((use) => !/mkdtemp(Sync)?\(join\(tmpdir\(\)|randomUUID\(\)|mktemp -d/.test(use)),
  ).toEqual([]);
});
