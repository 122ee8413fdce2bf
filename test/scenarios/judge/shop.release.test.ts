import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { defaultContracts } from "../../../src/fixtures/engine/scenario-environment.ts";
import { freePort } from "../../../src/judge/scene/run-command.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { startCli } from "../../support/cli.ts";
import { judge, subject } from "../../support/judge/judge.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * `judge shop`: what it finds out about shops that are good, bad, or do not work.
 */

describe.concurrent("a shop that", () => {
  test("verifies and never settles serves without payment", async () => {
    const { code, bad } = await judge("shop", subject("shop", "trusting"), "--cases", "same-twice");
    expect(bad).toEqual({ plain: "served_without_payment", "same-twice": "served_without_payment" });
    expect(code).toBe(1);
  });

  test("never asks its facilitator about a payment is told so", async () => {
    const { findings } = await judge("shop", subject("shop", "asks-once"), "--cases", "wrong-signature");
    expect(findings.map(({ verdict, notes }) => [verdict, ...notes])).toEqual([
      [
        "served_without_payment",
        "answered 200, where 402 or 400 is due",
        "your facilitator got no request about this payment",
      ],
      ["good"],
    ]);
  });

  test("settles and serves nothing charges without service", async () => {
    const { bad } = await judge("shop", subject("shop", "greedy"), "--cases", "plain");
    expect(bad).toEqual({ plain: "charged_without_service" });
  });

  test("gives no receipts and fails on nonsense answers wrongly", async () => {
    const { findings, bad, code } = await judge("shop", subject("shop", "curt"), "--cases", "malformed");
    expect(code).toBe(2);
    expect(bad).toEqual({ plain: "wrong_answer", "malformed-payment": "wrong_answer" });
    expect(findings.flatMap(({ notes }) => notes)).toEqual([
      "the 200 lacks X-PAYMENT-RESPONSE",
      "answered 500, where 402 or 400 is due",
    ]);
  });

  test.each([
    [
      "ends before it answers",
      ["ends"],
      /: The shop ended with exit code 4 before it answered at http:[^\n]*\n {4}cannot open the shop\n/,
    ],
    ["never answers", ["mute", "--timeout", "2"], /: The shop gave no answer at http:\S+ within 2 s\n/],
    [
      "asks for nothing",
      ["free-of-charge"],
      /: The shop answers 200 at http:\S+ without a payment\n.*served without payment/,
    ],
    [
      "asks another facilitator",
      ["astray"],
      /: The shop served nothing for a good payment, and made no request to the facilitator at http:\S+\n.*X402_FACILITATOR_URL/,
    ],
  ])(
    "%s is told so in a sentence, and nothing of it is left",
    async (_what, [manner = "", ...options], sentence) => {
      await using cli = await startCli(["judge", "shop", ...options, "--", ...subject("shop", manner)]);
      const { code } = await cli.ended;
      expect(cli.stderr().trim()).toMatch(sentence);
      expect([cli.stdout(), code]).toEqual(["", 3]);
      expect(await cli.leftovers()).toEqual({ processes: [], files: [] });
    },
  );
});

describe.concurrent("a shop of the public packages that is paid by Permit2", () => {
  /** Those that need no more of a shop than the public middleware has. */
  const cases =
    "wrong-signature,underpaid,nothing-paid,overpaid,other-recipient,other-asset,other-network,expired,too-early,facilitator-refuses";

  test.each([
    ["by scheme exact", "permit2", "10000"],
    ["up to a maximum", "metered", "2500"],
  ])("%s is judged", async (_way, manner, amount) => {
    const { findings, bad, code } = await judge("shop", subject("public-shop", manner), "--cases", cases);
    expect(bad).toEqual({});
    expect(findings).toHaveLength(1 + cases.split(",").length);
    expect(findings.filter(({ verdict }) => verdict === "not_run")).toEqual([]);
    expect(findings[0]).toMatchObject({ name: "plain", transfers: [{ amount }], services: 1 });
    expect(code).toBe(0);
  });

  test("and charges nothing has served nothing without payment", async () => {
    const { findings, bad } = await judge("shop", subject("public-shop", "free"), "--cases", "plain");
    expect(bad).toEqual({});
    expect(findings[0]).toMatchObject({ transfers: [], services: 1 });
  });

  test("and charges more than it says is found out", async () => {
    const { bad, code } = await judge("shop", subject("public-shop", "overcharging"), "--cases", "plain");
    expect(bad).toEqual({ plain: "other_charge" });
    expect(code).toBe(1);
  });
});

test("a shop that runs already is judged at its URL, with the facilitator at the port it was told", async () => {
  const [port, facilitatorPort] = [await freePort(), await freePort()];
  const [file = "", ...args] = subject("shop", "good");
  const network = networks["base-sepolia"];
  const shop = spawn(file, args, {
    env: {
      PORT: `${port}`,
      X402_FACILITATOR_URL: `http://127.0.0.1:${facilitatorPort}/v1`,
      X402_API_KEY: testKeys.local.apiKey,
      X402_PAY_TO: defaultContracts.testnet,
      X402_NETWORK: network.name,
      X402_ASSET: network.usdc.address,
      X402_ASSET_NAME: network.usdc.name,
      X402_ASSET_VERSION: network.usdc.version,
      X402_PRICE: "2500",
    },
    stdio: "ignore",
  });
  onTestFinished(() => void shop.kill());
  const origin = `http://127.0.0.1:${port}`;
  const { code, stdout, stderr } = await runHere([
    ...["judge", "shop", "--url", `${origin}/report`, "--other-url", `${origin}/other`],
    ...["--facilitator-port", `${facilitatorPort}`, "--cases", "two-routes,settle-answer-lost"],
  ]);
  expect(stderr).toBe(
    `The shop's facilitator is http://127.0.0.1:${facilitatorPort}/v1, with the API key ${testKeys.local.apiKey}\n`,
  );
  expect(stdout).toMatch(/plain +1 +1 +good\ntwo-routes +1 +1 +good\nsettle-answer-lost +1 +1 +good\n/);
  expect(code).toBe(0);
});

test("a shop that cannot be judged is an error in each report", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-judge-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const junit = join(folder, "judge.xml");
  const { code, stdout } = await runHere([
    ...["judge", "shop", "--json", "--junit", junit, "--", ...subject("shop", "ends")],
  ]);
  expect(code).toBe(3);
  expect(JSON.parse(stdout)).toMatchObject({
    findings: [],
    problem: expect.stringMatching(/^The shop ended/),
  });
  expect(await readFile(junit, "utf8")).toContain('<error message="The shop ended with exit code 4');
});

test("a shop is named in one way", async () => {
  const { stderr, code } = await runHere(["judge", "shop"]);
  expect(code).toBe(4);
  expect(stderr).toContain(
    "--url: is needed, or a command that starts the shop (for example -- node shop.js)",
  );
  const both = await runHere(["judge", "shop", "--url", "http://127.0.0.1:1", "--", "node"]);
  expect(both.stderr).toContain("--url: does not go with a command");
});
