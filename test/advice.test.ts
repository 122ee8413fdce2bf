import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const places = ["src", "docs", "examples", "README.md", "llms.txt", "CHANGELOG.md", "CONTRIBUTING.md"];

test("nothing advises npx with the command's name, which is another package's where this one is not installed", () => {
  const files = places.flatMap((place) =>
    place.includes(".")
      ? [join(root, place)]
      : readdirSync(join(root, place), { recursive: true, encoding: "utf8" })
          .filter((name) => /\.(ts|tsx|md|html|mjs|py|go|rs|yml|toml|json)$/.test(name))
          .filter((name) => !name.includes("node_modules"))
          .map((name) => join(root, place, name)),
  );
  const wrong = files.filter((file) => readFileSync(file, "utf8").includes(`npx ${"x402-kit"}`));
  expect(wrong).toEqual([]);
});
