import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeFolders, readInputFile, requireWritable, writeFiles } from "./files.ts";

const most = 1_048_576;
const reading = (file: string) => readInputFile(file, { most, what: "a header" });

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-files-"));
  writeFileSync(join(folder, "old.xml"), "");
});
afterAll(() => rmSync(folder, { recursive: true }));

test("a file of the greatest length is read, and a byte more is too long", async () => {
  const file = join(folder, "long.json");
  writeFileSync(file, "é".repeat(most / 2));
  expect(await reading(file)).toBe("é".repeat(most / 2));
  writeFileSync(file, "x".repeat(most + 1));
  await expect(reading(file)).rejects.toThrow(`${file} is longer than a header: more than 1 MiB`);
});

test("what never ends is not read to its end", async () => {
  await expect(reading("/dev/zero")).rejects.toThrow("/dev/zero is longer than a header");
});

test("an empty file is read, and what is no file is said to be unreadable", async () => {
  const file = join(folder, "empty.json");
  writeFileSync(file, "");
  expect(await reading(file)).toBe("");
  await expect(reading(folder)).rejects.toThrow(`${folder} cannot be read`);
  await expect(reading(join(folder, "missing.json"))).rejects.toThrow("missing.json cannot be read");
});

test("reports that cannot be written are named before the run, all at once", () => {
  const files = {
    junit: join(folder, "missing/judge.xml"),
    html: folder,
    csv: join(folder, "old.xml/list.csv"),
  };
  expect(() => requireWritable(files)).toThrow(
    [
      `--junit: there is no folder ${folder}/missing`,
      `--html: ${folder} is a folder`,
      `--csv: there is no folder ${folder}/old.xml`,
    ].join("\n"),
  );
});

test("a name that no file can have is named too", () => {
  const file = join(folder, "x".repeat(300));
  expect(() => requireWritable({ out: file })).toThrow(`--out: ${file} cannot be written`);
});

test("new files and old ones are fine, and none at all", () => {
  requireWritable({ junit: join(folder, "new.xml"), html: join(folder, "old.xml"), csv: undefined });
  requireWritable({ junit: "judge.xml" });
});

test("folders are made with those that they are in", () => {
  const path = join(folder, "one/two/three");
  makeFolders(path);
  makeFolders(path);
  expect(existsSync(path)).toBe(true);
});

test("what has keys in it is written for its owner alone", () => {
  writeFiles(
    folder,
    [".env", "shop.js"].map((path) => ({ path, text: "" })),
    false,
  );
  expect(statSync(join(folder, ".env")).mode & 0o777).toBe(0o600);
});

// Made by Node itself, with `recursive`, it would be tried for ever.
test.runIf(process.platform === "linux")("where the system makes no folders, that is said", () => {
  const files = [{ path: "shop.js", text: "" }];
  expect(() => writeFiles("/proc/no-such-place/shop", files, false)).toThrow(
    "/proc/no-such-place/shop/shop.js cannot be written",
  );
});
