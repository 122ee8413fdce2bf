import { expect, test } from "vitest";
import { z } from "zod";
import type { Finding } from "./judgment.ts";
import { renderBadge, renderJudgment, renderJudgmentJunit, renderSarif } from "./judgment.ts";

const good: Finding = {
  name: "plain",
  network: "base",
  verdict: "paid_once_served",
  verdictText: "paid once and served",
  isGood: true,
  situation: "Asks, settles, and serves.",
  safe: "Pays once.",
  transfers: [],
  services: 1,
  exchanges: [],
  links: [],
  notes: [],
  tookMs: 1_000,
};
const bad: Finding = {
  ...good,
  name: "slow-answer",
  verdict: "paid_twice",
  verdictText: "paid twice",
  isGood: false,
  exchanges: ["+0.0 s  GET /report <without> payment → 402"],
  notes: ["it got nothing, and exited with 0"],
};
const skipped: Finding = { ...good, name: "two-routes", verdict: "not_run", notes: ["sells nothing else"] };
const findings = [bad, good, skipped];

test("JUnit has a failure with everything that was sent", () => {
  expect(renderJudgmentJunit("node buyer.js", findings)).toMatchInlineSnapshot(`
    "<?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="x402 judgment of node buyer.js" tests="3" failures="1" errors="0" skipped="1" time="3.000">
      <testsuite name="base" tests="3" failures="1" errors="0" skipped="1" time="3.000">
        <testcase name="slow-answer" classname="judge.paid_twice" time="1.000">
          <failure message="paid twice">Asks, settles, and serves.
    +0.0 s  GET /report &#60;without&#62; payment → 402
    it got nothing, and exited with 0
    Good: Pays once.</failure>
        </testcase>
        <testcase name="plain" classname="judge.paid_once_served" time="1.000"/>
        <testcase name="two-routes" classname="judge.not_run" time="1.000">
          <skipped message="sells nothing else"/>
        </testcase>
      </testsuite>
    </testsuites>
    "
  `);
});

test("SARIF has a result for each bad case, at the file that was judged", () => {
  const sarif = z
    .object({ runs: z.array(z.object({ results: z.array(z.unknown()), tool: z.unknown() })) })
    .parse(JSON.parse(renderSarif("buyer.js", findings)));
  expect(sarif.runs[0]?.results).toMatchInlineSnapshot(`
    [
      {
        "level": "error",
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "buyer.js",
              },
              "region": {
                "startLine": 1,
              },
            },
          },
        ],
        "message": {
          "text": "paid twice
    Asks, settles, and serves.
    +0.0 s  GET /report <without> payment → 402
    it got nothing, and exited with 0
    Good: Pays once.",
        },
        "ruleId": "slow-answer",
      },
    ]
  `);
});

test("the badge counts the good cases among those that were run", () => {
  expect(renderBadge(findings)).toMatch(/aria-label="x402 judge: 1 of 2 good".*#c62828/s);
  expect(renderBadge([good])).toMatch(/1 of 1 good.*#2e7d32/s);
});

test("the last line is correct English for one case and for several", () => {
  const lastLine = (...of: Finding[]) => renderJudgment("node buyer.js", of, 7).split("\n").at(-1);
  expect(lastLine(good)).toBe("The one case is good.");
  expect(lastLine(good, skipped)).toBe("All 2 cases are good.");
  expect(lastLine(bad, good)).toBe("1 of 2 cases is bad. The same run again: --seed 7");
  expect(lastLine(bad, bad)).toBe("2 of 2 cases are bad. The same run again: --seed 7");
});

test("the report shows no control characters of the judged program, and keeps its lines", () => {
  const text = renderJudgment("node buyer.js", [{ ...bad, notes: ["it said \u001b[2J\u009b"] }, good], 1);
  expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(text).toContain("it said \\u001b[2J\\u009b");
  expect(text).toMatch(/^plain /m);
});
