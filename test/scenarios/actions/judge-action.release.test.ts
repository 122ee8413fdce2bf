import { expect, test } from "vitest";
import { checkWorkflow, runAction } from "../../support/github-action.ts";
import { subject } from "../../support/judge/judge.ts";

test("the action judges a client, writes its reports, and shows the table", async () => {
  const command = subject("buyer", "safe").join(" ");
  const { failed, read } = await runAction("action.yml", {
    judge: "client",
    command,
    options: "--cases asks-again --seed 3",
  });
  expect(failed).toBe(false);
  expect(await read("summary.md")).toMatch(
    /^```text\n[\s\S]*asks-again +1 +1 +paid once and served\n[\s\S]*```\n$/,
  );
  expect(await read("x402-judge/judge.xml")).toContain('tests="2" failures="0"');
});

test("the action fails for a shop that charges and serves nothing, and still shows why", async () => {
  const command = subject("shop", "greedy").join(" ");
  const { failed, read } = await runAction("action.yml", {
    ...{ judge: "shop", command, options: "--cases plain", "report-folder": "reports/shop" },
  });
  expect(failed).toBe(true);
  expect(await read("summary.md")).toContain("plain: charged without service");
  expect(await read("reports/shop/judge.xml")).toContain('failures="1"');
});

test("the example workflow gives the action what it takes", async () => {
  expect(await checkWorkflow("examples/workflows/judge.yml", "action.yml")).toEqual([]);
});
