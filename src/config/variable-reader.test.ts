import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadEnvFile } from "./variable-reader.ts";

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "x402-kit-test-"));
  file = join(directory, ".env");
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(text: string, mode = 0o600): void {
  writeFileSync(file, text);
  chmodSync(file, mode);
}

describe("a file .env", () => {
  test("adds to the environment, and changes nothing that is set", () => {
    write("A=1\nB=2\n");
    const env: Record<string, string | undefined> = { B: "3" };
    expect(loadEnvFile(env, file)).toEqual([]);
    expect(env).toEqual({ A: "1", B: "3" });
  });

  test("with a byte order mark keeps its first variable", () => {
    write("\uFEFFBASE_RPC_URL=https://base.example\nPORT=80\n");
    const env = {};
    loadEnvFile(env, file);
    expect(env).toEqual({ BASE_RPC_URL: "https://base.example", PORT: "80" });
  });

  test("that others can read draws a warning", () => {
    write("A=1", 0o644);
    expect(loadEnvFile({}, file)).toEqual([
      { name: ".env", problem: "can be read by every user of this machine; run: chmod 600 .env" },
    ]);
    write("A=1", 0o640);
    expect(loadEnvFile({}, file)).toEqual([]);
  });

  test.each([
    ['A=1\n"secret\nB=2', "line 2 is no NAME=value, and passed over"],
    ["=\n===\nA=1\n- B=2\n", "lines 1, 2, 4 are no NAME=value, and passed over"],
    [`${"x\n".repeat(7)}`, "lines 1, 2, 3, 4, 5 and 2 more are no NAME=value, and passed over"],
  ])("warns of what is no variable without showing it: %j", (text, problem) => {
    write(text);
    expect(loadEnvFile({}, file)).toEqual([{ name: ".env", problem }]);
  });

  test.each([
    ["# a comment\r\n\r\nexport A = 1 # one\r\nB=\r\n"],
    ['A="several\nlines = of\none"\nB=`x\ny` # rest'],
    ["A='not closed\nB=1"],
  ])("has no lines to warn of: %j", (text) => {
    write(text);
    expect(loadEnvFile({}, file)).toEqual([]);
  });

  test("need not be there", () => {
    const env = {};
    expect(loadEnvFile(env, file)).toEqual([]);
    expect(env).toEqual({});
  });

  test("that cannot be read says so", () => {
    expect(() => loadEnvFile({}, directory)).toThrow("The file .env cannot be read");
  });
});
