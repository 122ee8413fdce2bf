import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { frameworks } from "../src/payer/shop-variables.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"));

test.each([...frameworks, "typescript"])(
  "a shop with %s asks for this version, and for the packages that it is tested with",
  (framework) => {
    const { version, dependencies, devDependencies } = read("package.json");
    const written = read(`templates/${framework}/package.json`);
    const installed = {
      ...dependencies,
      ...devDependencies,
      viem: read("node_modules/viem/package.json").version,
    };
    for (const [name, range] of Object.entries({ ...written.dependencies, ...written.devDependencies })) {
      expect(range, name).toBe(`^${name === "x402-facilitator-kit" ? version : installed[name]}`);
    }
  },
);

test("the JavaScript of the templates is made from their TypeScript", async () => {
  const script = join(root, "scripts/generate-templates.ts");
  await promisify(execFile)(process.execPath, [script, "--check"]);
});
