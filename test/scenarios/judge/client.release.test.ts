import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { startCli } from "../../support/cli.ts";
import { judge, subject } from "../../support/judge/judge.ts";
import { commandOf } from "../../support/processes.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * `judge client`: what it finds out about buyers that are safe, careless, or do not work.
 */

const buyer = (manner: string) => subject("buyer", manner);

test("a buyer that signs anew when no answer comes is found to pay twice", async () => {
  const cases = "slow-answer,shop-answer-lost,facilitator-answer-lost";
  const { code, findings, verdicts } = await judge(
    "client",
    buyer("signs-anew"),
    "--slow",
    "5",
    "--cases",
    cases,
  );
  expect(verdicts).toEqual({
    plain: "paid_once_served",
    "slow-answer": "paid_twice",
    "shop-answer-lost": "paid_twice",
    "facilitator-answer-lost": "paid_twice",
  });
  expect(findings.find(({ name }) => name === "shop-answer-lost")).toMatchObject({
    transfers: [{ amount: "10000" }, { amount: "10000" }],
    services: 1,
    exchanges: [
      expect.stringMatching(/^\+\d\.\d s {2}GET \/report without payment → 402 asks 10000/),
      expect.stringMatching(/with payment 1: 10000 to 0x.* on base-sepolia → reset instead of an answer$/),
      expect.stringMatching(/with payment 2: 10000 to 0x.* on base-sepolia → .*$/),
    ],
  });
  expect(code).toBe(1);
});

test("the buyer that init writes neither pays twice nor loses what it has paid for", async () => {
  const file = join(import.meta.dirname, "../../../templates/common/buyer.js");
  const { code, bad } = await judge("client", [process.execPath, file]);
  expect(bad).toEqual({});
  expect(code).toBe(0);
}, 180_000);

test("a buyer that gives up is shown what it has paid for, and what would have been safe", async () => {
  const { code, stdout } = await runHere([
    ...["judge", "client", "--cases", "shop-answer-lost", "--"],
    ...buyer("gives-up"),
  ]);
  const shown = stdout.slice(stdout.indexOf("case")).replace(/\+\d+\.\d s/g, "+0.0 s");
  expect(shown).toMatchInlineSnapshot(`
    "case              paid  had  verdict
    ────────────────  ────  ───  ────────────────────
    shop-answer-lost     1    0  PAID AND NOT SERVED
    plain                1    1  paid once and served

    Wrong
      shop-answer-lost: paid and not served although it could have been
        Settles, and the connection is reset instead of an answer.
          +0.0 s  GET /report without payment → 402 asks 10000 (a payment is
                  required)
          +0.0 s  GET /report with payment 1: 10000 to 0xf932d4… on
                  base-sepolia → reset instead of an answer
        Good: Sends the same payment again: it can be settled only once, so the
        goods come and nothing is paid a second time.

    Of 2 cases 1 is wrong and 0 differ.
    The same run again: --seed 1
    "
  `);
  expect(
    stdout
      .split("\n")
      .slice(1)
      .every((line) => line.length <= 80),
  ).toBe(true);
  expect(code).toBe(1);
});

test("the shop speaks the version, on the networks, and asks for the header that it is told", async () => {
  const { findings, code } = await judge(
    "client",
    buyer("safe"),
    ...["--v1", "--network", "base,polygon", "--header", "X-Shop: a b", "--cases", "plain"],
  );
  expect(findings.map(({ name, exchanges }) => [name, exchanges.at(-1)?.replace(/^\S+ s {2}/, "")])).toEqual([
    ["plain (base)", expect.stringMatching(/with payment 1: 10000 to 0x\w+… on base → 200 goods$/)],
    ["plain (polygon)", expect.stringMatching(/with payment 1: 10000 to 0x\w+… on polygon → 200 goods$/)],
  ]);
  expect(code).toBe(0);
  const misused = await runHere([
    "judge",
    "client",
    "--header",
    "X-Shop",
    "--cases",
    "redirct",
    "--",
    "true",
  ]);
  expect(misused.stderr).toContain("--header: is not of the form NAME: VALUE");
  expect(misused.stderr).toMatch(/--cases: no case's name contains "redirct"; the nearest are redirect/);
  expect(misused.code).toBe(4);
});

test("the studio shows one way to pay, so that none is left unjudged behind it", async () => {
  const ways = ["--studio", "--ways", "eip3009,permit2"];
  const { code, stderr } = await runHere(["judge", "client", ...ways, "--", "true"]);
  expect(stderr).toContain("--studio: goes with one payment method");
  expect(code).toBe(4);
});

test("what was paid can be followed into the studio, which stays until Ctrl-C", async () => {
  await using cli = await startCli([
    ...["judge", "client", "--studio", "--cases", "bad-gateway,pending", "--v1", "--"],
    ...buyer("signs-anew"),
  ]);
  await cli.printed(/Of \d+ cases \d+ (is|are) wrong/);
  // The case `pending` has a chain and a studio of its own.
  const links = [...cli.stdout().matchAll(/payment 1 in the studio:\s+(http:\S+)\/studio#(0x\w{64})\n/g)];
  expect(new Set(links.map(([, origin]) => origin)).size).toBe(2);
  for (const [, origin, id = ""] of links) {
    const payment = await fetch(`${origin}/payments/${id}`);
    expect([payment.status, await payment.text()]).toEqual([200, expect.stringContaining(id)]);
  }
  cli.kill("SIGINT");
  expect((await cli.ended).code).toBe(1);
  expect(await cli.leftovers()).toEqual({ processes: [], files: [] });
});

test("a client that is bad at a good shop is not run at others, which would say the same", async () => {
  const { code, stdout } = await runHere(["judge", "client", "--v1", "--", ...buyer("buys-again")]);
  expect(stdout).toMatch(/plain +2 +1 +PAID TWICE\n/);
  expect(stdout.replace(/\s+/g, " ")).toMatch(
    / 29 it is bad where nothing is wrong with the shop: slow-answer, .* Of 1 case 1 is wrong /,
  );
  expect(code).toBe(1);
});

describe("a command that does not buy is told so in a sentence", () => {
  test.concurrent.each([
    [
      "cannot be started",
      ["x402-no-such-program"],
      /^x402-kit judge client: The command could not be started: x402-no-such-program: there is no such program/,
    ],
    ["never asks", buyer("never-asks"), /: The command ended with exit code 3 and never requested X402_URL/],
    [
      "signs to its own address in place of payTo",
      buyer("pays-itself"),
      /: The command's payment was refused \(402 asks 10000 \(invalid_exact_evm_payload_recipient_mismatch: \S+ is 0x\w{40}, but must be .* 0x\w{40}\)\), and it ended/,
    ],
  ])("%s", async (_what, command, sentence) => {
    const { code, stdout, stderr } = await runHere(["judge", "client", "--", ...command]);
    expect(stderr).toMatch(sentence);
    expect(stderr.split("\n").length).toBeLessThan(10);
    expect([stdout, code]).toEqual(["", 3]);
  });

  test.concurrent("outlives its time, and nothing of it is left", async () => {
    await using cli = await startCli([
      "judge",
      "client",
      "--timeout",
      "2",
      "--slow",
      "1",
      "--",
      ...buyer("hangs"),
    ]);
    expect((await cli.ended).code).toBe(3);
    expect(cli.stderr()).toMatch(
      /: The command still ran after 2 s, and made no request to the shop; it was ended/,
    );
    expect(cli.descendants().size).toBeGreaterThan(2);
    expect(await cli.leftovers()).toEqual({ processes: [], files: [] });
  });
});

test.each(["SIGINT", "SIGKILL"] as const)("%s ends the command under judgement too", async (signal) => {
  await using cli = await startCli(["judge", "client", "--", ...buyer("hangs")]);
  const isBusy = () => [...cli.descendants()].some((pid) => commandOf(pid).startsWith("sleep 600"));
  while (!isBusy()) await sleep(20);
  cli.kill(signal);
  expect(await cli.ended).toEqual(signal === "SIGINT" ? { code: 130, signal: null } : { code: null, signal });
  expect((await cli.leftovers()).processes).toEqual([]);
});
