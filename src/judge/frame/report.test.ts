import { expect, test } from "vitest";
import { foldRepeats, type PurchaseFacts, reportPurchases } from "../scene/purchases.ts";
import { renderHtml } from "./render-html.ts";
import { renderJunit } from "./render-junit.ts";
import { renderText } from "./render-text.ts";
import { summarize } from "./report.ts";
import type { Finding } from "./run-cases.ts";

const facts: PurchaseFacts = { transfers: [], services: 1, exchanges: [], links: [] };
const good: Finding<PurchaseFacts> = {
  name: "plain",
  suite: "base",
  verdict: "paid_once_served",
  text: "paid once and served",
  level: "good",
  situation: "Asks, settles, and serves.",
  good: "Pays once.",
  seen: [],
  notes: [],
  facts,
  tookMs: 1_000,
};
const bad: Finding<PurchaseFacts> = {
  ...good,
  name: "slow-answer",
  verdict: "paid_twice",
  text: "paid twice",
  level: "wrong",
  seen: ["+0.0 s  GET /report <without> payment → 402"],
  notes: ["it got nothing, and exited with 0"],
};
const skipped: Finding<PurchaseFacts> = {
  ...good,
  name: "two-routes",
  verdict: "not_run",
  text: "not run",
  level: "not_run",
  notes: ["sells nothing else"],
  facts: undefined,
  tookMs: 0,
};
const differing: Finding<PurchaseFacts> = {
  ...good,
  name: "curt",
  verdict: "wrong_answer",
  text: "wrong status or headers",
  level: "differs",
  notes: ["the 200 lacks PAYMENT-RESPONSE"],
};
const unjudged: Finding<PurchaseFacts> = {
  ...skipped,
  verdict: "not_judged",
  level: "not_judged",
  notes: ["the shop had ended"],
};
const reportOf = (findings: Finding<PurchaseFacts>[], problem?: string) =>
  reportPurchases({ subject: "node buyer.js", networks: ["base"], seed: 7, findings, problem });

test("JUnit has a failure with everything that was sent", () => {
  expect(renderJunit(reportOf([good, skipped, bad]))).toMatchInlineSnapshot(`
    "<?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="x402 judgment of node buyer.js on base" tests="3" failures="1" errors="0" skipped="1" time="2.000">
      <testsuite name="base" tests="3" failures="1" errors="0" skipped="1" time="2.000">
        <testcase name="slow-answer" classname="judge.paid_twice" time="1.000">
          <failure message="paid twice">Asks, settles, and serves.
    +0.0 s  GET /report &#60;without&#62; payment → 402
    it got nothing, and exited with 0
    Good: Pays once.</failure>
        </testcase>
        <testcase name="two-routes" classname="judge.not_run" time="0.000">
          <skipped message="sells nothing else"/>
        </testcase>
        <testcase name="plain" classname="judge.paid_once_served" time="1.000"/>
      </testsuite>
    </testsuites>
    "
  `);
});

test("what only differs is no failure in JUnit", () => {
  const junit = renderJunit(reportOf([differing]));
  expect(junit).toContain('tests="1" failures="0"');
  expect(junit).toContain("the 200 lacks PAYMENT-RESPONSE");
});

test("a program that could not be judged is an error in JUnit", () => {
  expect(renderJunit(reportOf([], "The shop gave no answer"))).toContain(
    'errors="1" skipped="0" time="0.000">\n    <testcase name="judgment" classname="judge" time="0.000">\n      <error message="The shop gave no answer"/>',
  );
});

test.each([
  ["all is good", [good], undefined, 0],
  ["something is wrong", [differing, unjudged, bad], undefined, 1],
  ["answers differ", [differing, good], undefined, 2],
  ["something could not be judged", [differing, unjudged], undefined, 3],
  ["nothing could", [], "The shop gave no answer", 3],
  ["nothing was run", [skipped], undefined, 3],
  ["a case does not apply", [good, skipped], undefined, 0],
])("the exit code when %s", (_what, findings, problem, code) => {
  expect(reportOf(findings, problem).exitCode).toBe(code);
});

test("the last lines say how many cases ran, and how to run them again", () => {
  const linesOf = (...findings: Finding<PurchaseFacts>[]) => summarize(reportOf(findings));
  const again = "The same run again: --seed 7";
  expect(linesOf(good)).toEqual(["The one case is good."]);
  expect(linesOf(good, good)).toEqual(["All 2 cases are good."]);
  expect(linesOf(good, good, skipped)).toEqual([
    "All 2 cases are good. 1 could not be run, for the reasons above.",
  ]);
  expect(linesOf(bad, good)).toEqual(["Of 2 cases 1 is wrong and 0 differ.", again]);
  expect(linesOf(bad, bad, differing)).toEqual(["Of 3 cases 2 are wrong and 1 differs.", again]);
});

test("the page has every case, what happened in it, and nothing of the judged program as markup", () => {
  const page = renderHtml(reportOf([good, skipped, bad]));
  expect(page.match(/<details class="\w+"/g)).toEqual(
    ["wrong", "not_run", "good"].map((level) => `<details class="${level}"`),
  );
  expect(page).toContain("&#60;without&#62;");
  expect(page).toContain("sells nothing else");
});

test("equal requests are one line, with their number and the time of the last", () => {
  const lines = ["+0.1 s  GET /report → 402", "+0.2 s  GET /report → 402", "+0.9 s  GET /report → 402"];
  expect(foldRepeats([...lines, "+1.0 s  GET /report → 200", "+1.1 s  GET /report → 402"])).toEqual([
    "+0.1 s  GET /report → 402 (3 times, the last at +0.9 s)",
    "+1.0 s  GET /report → 200",
    "+1.1 s  GET /report → 402",
  ]);
});

test("the report shows no control characters of the judged program, and keeps its lines", () => {
  const text = renderText(reportOf([{ ...bad, notes: ["it said \u001b[2J\u009b"] }, good]));
  expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(text).toContain("it said \\u001b[2J\\u009b");
  expect(text).toMatch(/^plain /m);
});
