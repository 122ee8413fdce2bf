import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { isPublished, kitVersion } from "../src/util/self-command.ts";

/* Until the package is published, no document leads to a name on npm that somebody else could take. */

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const actions = ["action.yml", "actions/up/action.yml"];

test("the README begins with the checkout", () => {
  const [, block = ""] = /^```sh\n(.*?)^```$/ms.exec(read("README.md")) ?? [];
  const commands = block
    .trim()
    .split("\n")
    .map((line) => line.replace(/\s+#.*/, ""));
  expect(commands).toEqual(["npm ci && npm start", "npm test"]);
});

test("documents and actions call the program as it can be installed: from npm only once it is published", () => {
  const documents = globSync(["*.md", "llms.txt", "{docs,examples,production}/**/*.md"], {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  }).filter((path) => path !== "docs/publishing.md");
  expect(documents.length).toBeGreaterThan(20);
  const outdated = isPublished ? /npx --no-install x402-kit/ : /npx (?:--yes )?x402-facilitator-kit/;
  expect([...documents, ...actions].filter((path) => outdated.test(read(path)))).toEqual([]);
});

test.each(actions)("%s installs the version it ships with", (path) => {
  expect(parse(read(path)).inputs.version.default).toBe(kitVersion());
});
