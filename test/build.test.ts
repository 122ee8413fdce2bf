import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
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

test("what an interrupted build has left is in no later one", async () => {
  const interrupted = Promise.withResolvers<void>();
  void replaceFolder(folder, (made) => {
    writeFileSync(join(made, "half"), "");
    return interrupted.promise;
  });
  expect(readdirSync(folder)).toEqual(["first"]);
  await replaceFolder(folder, async (made) => writeFileSync(join(made, "second"), ""));
  expect([readdirSync(folder), existsSync(`${folder}-new`)]).toEqual([["second"], false]);
});
