import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { requireWritable } from "./files.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-reports-"));
  writeFileSync(join(folder, "old.xml"), "");
});
afterAll(() => rmSync(folder, { recursive: true }));

test("reports that cannot be written are named before the run, all at once", () => {
  const files = {
    junit: join(folder, "missing/judge.xml"),
    sarif: folder,
    badge: join(folder, "old.xml/badge.svg"),
  };
  expect(() => requireWritable(files)).toThrow(
    [
      `--junit: there is no folder ${folder}/missing`,
      `--sarif: ${folder} is a folder`,
      `--badge: there is no folder ${folder}/old.xml`,
    ].join("\n"),
  );
});

test("a name that no file can have is named too", () => {
  const file = join(folder, "x".repeat(300));
  expect(() => requireWritable({ out: file })).toThrow(`--out: ${file} cannot be written`);
});

test("new files and old ones are fine, and none at all", () => {
  requireWritable({ junit: join(folder, "new.xml"), sarif: join(folder, "old.xml"), badge: undefined });
  requireWritable({ junit: "judge.xml" });
});
