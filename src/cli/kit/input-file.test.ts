import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readInputFile } from "./files.ts";

const most = 1_048_576;
const reading = (file: string) => readInputFile(file, { most, what: "a capture" });

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "x402-kit-input-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

test("a file of the greatest length is read, and a byte more is too long", async () => {
  const file = join(folder, "long.json");
  writeFileSync(file, "é".repeat(most / 2));
  expect(await reading(file)).toBe("é".repeat(most / 2));
  writeFileSync(file, "x".repeat(most + 1));
  await expect(reading(file)).rejects.toThrow(`${file} is longer than a capture: more than 1 MiB`);
});

test("what never ends is not read to its end", async () => {
  await expect(reading("/dev/zero")).rejects.toThrow("/dev/zero is longer than a capture");
});

test("an empty file is read, and what is no file is said to be unreadable", async () => {
  const file = join(folder, "empty.json");
  writeFileSync(file, "");
  expect(await reading(file)).toBe("");
  await expect(reading(folder)).rejects.toThrow(`${folder} cannot be read`);
  await expect(reading(join(folder, "missing.json"))).rejects.toThrow("missing.json cannot be read");
});
