import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { repository } from "../../support/cli.ts";
import { judge } from "../../support/judge/judge.ts";

/*
 * examples/python, as its README runs it. Where there is no python3 nothing can be run, which is printed.
 */

const run = promisify(execFile);
const folder = join(repository, "examples/python");

async function python(script: string, ...args: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout } = await run("python3", ["-B", join(folder, script), ...args], { timeout: 30_000 });
    return stdout;
  } catch (error) {
    if (Reflect.get(Object(error), "code") !== "ENOENT") throw error;
    console.warn(`There is no python3 here: examples/python/${script} was not run`);
    return undefined;
  }
}

test("the signer in Python makes the digests and signatures of the vectors, to the byte", async () => {
  const said = await python("check_vectors.py");
  if (said !== undefined) expect(said).toBe("13 digests and 5 signatures are as they should be\n");
}, 40_000);

test("the example in Python pays, and is told of a payer without money", async () => {
  await using mock = await startMockServer();
  // Given its port alone.
  const said = await python("pay.py", new URL(mock.url).port);
  if (said === undefined) return;
  expect(said.replace(/0x[0-9a-f]{64}/, "HASH").split("\n")).toEqual([
    "funded verify True valid",
    "funded settle True HASH",
    expect.stringMatching(/^empty verify False The payer holds 0 /),
    expect.stringMatching(/^empty settle False The payer holds 0 /),
    "",
  ]);
  expect(mock.calls.map(({ operation }) => operation)).toEqual(["verify", "settle", "verify", "settle"]);
}, 40_000);

test("the buyer in Python pays once where answers are lost, and nobody but the shop", async () => {
  // Prints nothing: it tells whether there is a Python.
  if ((await python("signer.py")) === undefined) return;
  const { code, verdicts } = await judge(
    "client",
    ["python3", "-B", join(folder, "buy.py")],
    ...["--cases", "facilitator-answer-lost,nothing-redelivered,reset-in-body,redirect,thousandfold"],
  );
  expect(verdicts).toEqual({
    plain: "paid_once_served",
    "facilitator-answer-lost": "paid_once_served",
    "nothing-redelivered": "paid_once_stopped",
    "reset-in-body": "paid_once_served",
    redirect: "paid_once_served",
    "redirect-elsewhere": "paid_once_served",
    thousandfold: "not_paid_not_served",
  });
  expect(code).toBe(0);
}, 60_000);

test("a session in Python has payments signed, outcomes chosen and calls of its own", async () => {
  await using mock = await startMockServer();
  const said = await python("try_session.py", new URL(mock.url).port);
  if (said === undefined) return;
  expect(said.split("\n")).toEqual([
    "settle True",
    "settle insufficient_funds",
    "verify invalid_exact_evm_payload_authorization_valid_before",
    "calls ['settle', 'settle', 'verify']",
    expect.stringMatching(/^There is no scenario "settle\.nope"; the nearest are settle\./),
    "",
  ]);
  expect(mock.calls).toEqual([]);
}, 40_000);

test("the example in Python calls nothing valid that got no verdict, and says what it did not reach", async () => {
  await using mock = await startMockServer();
  const said = await python("pay.py", `${mock.url}/elsewhere`);
  if (said === undefined) return;
  expect(said).toMatch(/^funded verify None \S/);
  expect(said).not.toContain("valid");
  await expect(python("pay.py", "http://127.0.0.1:9/v1")).rejects.toMatchObject({
    stderr: expect.stringMatching(/^Nothing was reached at http:\/\/127\.0\.0\.1:9\/v1\/verify .*\n$/),
  });
}, 40_000);
