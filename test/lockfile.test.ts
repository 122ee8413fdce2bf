import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findLockProblems } from "../scripts/lockfile.ts";

const integrity =
  "sha512-0pfFzegeDWJHJIAmTLRP2DwHjdF5s7jo9tuztdQxAhINCdvS+3nGINqPd00AphqJR/0LhANUS6/+7SCb98YOfA==";
const lock = (packages: object) => JSON.stringify({ packages: { "": { name: "kit" }, ...packages } });

test("the lockfile pins every package by its bytes, but for those that are listed with a reason", () => {
  expect(findLockProblems(readFileSync(join(import.meta.dirname, "../package-lock.json"), "utf8"))).toEqual(
    [],
  );
});

test("an entry without integrity, a private registry and a list that is out of date are found", () => {
  const text = lock({
    "node_modules/good": { version: "1.0.0", integrity },
    "node_modules/good/node_modules/@some/loose": { version: "2.0.0" },
    "node_modules/internal": { version: "3.0.0", integrity, resolved: "https://npm.example/internal.tgz" },
    "node_modules/public": { version: "4.0.0", integrity, resolved: "https://registry.npmjs.org/public.tgz" },
    "node_modules/tool-mac": { version: "5.0.0" },
    "node_modules/tool-win": { version: "5.0.0", integrity },
  });
  expect(findLockProblems(text, { "tool-*@5.0.0": ["mac", "win", "bsd"] })).toMatchInlineSnapshot(`
    [
      "@some/loose@2.0.0 has no integrity: what npm installs for it is not checked. Install it again with npm, so that it gets one",
      "internal@3.0.0 comes from npm.example, which others cannot reach: set npm's omit-lockfile-registry-resolved, and install again",
      "tool-win@5.0.0 has its integrity: take it off the list in scripts/lockfile.ts",
      "tool-bsd@5.0.0 is not in the lockfile: take it off the list in scripts/lockfile.ts",
    ]
  `);
});
