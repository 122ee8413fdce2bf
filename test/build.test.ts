import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lookAtSources } from "../scripts/build-fingerprint.ts";
import { areAsNoted, lookAt } from "../scripts/is-built.mjs";
import { replaceFolder } from "../scripts/replace-folder.ts";

/* `npm run build` while the last build is in use. */

let parent: string;
let folder: string;
beforeEach(async () => {
  parent = mkdtempSync(join(tmpdir(), "x402-kit-build-"));
  folder = join(parent, "dist");
  await replaceFolder(folder, async (made) => writeFileSync(join(made, "first"), "whole"));
});
afterEach(() => rmSync(parent, { recursive: true }));

test("the last build is there whole until the next one is, and nothing else is left", async () => {
  await replaceFolder(folder, async (made) => {
    writeFileSync(join(made, "second"), "");
    expect(readFileSync(join(folder, "first"), "utf8")).toBe("whole");
  });
  expect([readdirSync(folder), readdirSync(parent)]).toEqual([["second"], ["dist"]]);
});

test("a build that fails leaves the last one", async () => {
  const failing = replaceFolder(folder, async (made) => {
    writeFileSync(join(made, "half"), "");
    throw new Error("a type is wrong");
  });
  await expect(failing).rejects.toThrow("a type is wrong");
  expect([readdirSync(folder), readdirSync(parent)]).toEqual([["first"], ["dist"]]);
});

test("what an interrupted build has left is removed by the next one, and a build under way elsewhere is let be", async () => {
  const { pid } = spawnSync(process.execPath, ["--version"]);
  for (const each of [pid, process.ppid]) mkdirSync(`${folder}-new-${each}`);
  await replaceFolder(folder, async (made) => writeFileSync(join(made, "second"), ""));
  expect(readdirSync(folder)).toEqual(["second"]);
  expect(readdirSync(parent).sort()).toEqual(["dist", `dist-new-${process.ppid}`]);
});

/* `npm start` runs what was built, and never what was built from other sources. */

describe("the built command is of these sources", () => {
  const paths = ["src", "src/a.ts", "src/b", "src/b/c.ts"];
  const at = (path: string) => join(parent, path);
  const note = () => at("noted.json");
  beforeEach(() => {
    mkdirSync(at("src/b"), { recursive: true });
    for (const file of ["src/a.ts", "src/b/c.ts"]) writeFileSync(at(file), "1");
    writeFileSync(note(), JSON.stringify(paths.map((path) => [path, ...lookAt(at(path))])));
  });

  test("while nothing has changed", () => expect(areAsNoted(parent, note())).toBe(true));

  test.each([
    ["a file was written", () => writeFileSync(at("src/a.ts"), "2")],
    ["a file was added", () => writeFileSync(at("src/b/d.ts"), "")],
    ["a folder was added", () => mkdirSync(at("src/b/e"))],
    ["a file was removed", () => rmSync(at("src/b/c.ts"))],
    [
      "a file of the same size and time has taken the place of one",
      () => {
        const { atime, mtime } = statSync(at("src/a.ts"));
        writeFileSync(at("other"), "2");
        utimesSync(at("other"), atime, mtime);
        renameSync(at("other"), at("src/a.ts"));
      },
    ],
    ["nothing is known of a build", () => rmSync(note())],
    ["what was noted is damaged", () => writeFileSync(note(), "[[1")],
  ])("not when %s", (_, change) => {
    change();
    expect(areAsNoted(parent, note())).toBe(false);
  });

  test("and what the last build has noted is what npm start looks at", () => {
    const seen = lookAtSources().map(([path]) => path);
    expect(seen).toEqual(
      expect.arrayContaining([
        "src",
        "src/cli/up",
        "src/cli/up/up.ts",
        "scripts/build.ts",
        "package-lock.json",
      ]),
    );
  });
});
