import { expect, test } from "vitest";
import { exitCodeOf, type Finding, foldRepeats, renderJudgment } from "./judgment.ts";
import { renderJudgmentJunit } from "./render-files.ts";

const good: Finding = {
  name: "plain",
  network: "base",
  verdict: "paid_once_served",
  verdictText: "paid once and served",
  level: "good",
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
  level: "wrong",
  exchanges: ["+0.0 s  GET /report <without> payment → 402"],
  notes: ["it got nothing, and exited with 0"],
};
const skipped: Finding = {
  ...good,
  name: "two-routes",
  verdict: "not_run",
  level: "not_run",
  notes: ["sells nothing else"],
};
const differing: Finding = {
  ...good,
  name: "curt",
  verdict: "wrong_answer",
  verdictText: "wrong status or headers",
  level: "differs",
  notes: ["the 200 lacks PAYMENT-RESPONSE"],
};
const unjudged: Finding = {
  ...skipped,
  verdict: "not_judged",
  level: "not_judged",
  notes: ["the shop had ended"],
};
const judgmentOf = (...findings: Finding[]) => ({ subject: "node buyer.js", seed: 7, findings });
const judgment = judgmentOf(bad, good, skipped);

test("JUnit has a failure with everything that was sent", () => {
  expect(renderJudgmentJunit(judgment)).toMatchInlineSnapshot(`
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

test("what only differs is no failure in JUnit", () => {
  const junit = renderJudgmentJunit(judgmentOf(differing));
  expect(junit).toContain('tests="1" failures="0"');
  expect(junit).toContain("the 200 lacks PAYMENT-RESPONSE");
});

test("a program that could not be judged is an error in JUnit", () => {
  const nothing = { ...judgmentOf(), problem: "The shop gave no answer" };
  expect(renderJudgmentJunit(nothing)).toContain(
    'errors="1" skipped="0" time="0.000">\n    <testcase name="judgment" classname="judge" time="0.000">\n      <error message="The shop gave no answer"/>',
  );
});

test.each([
  ["all is good", judgmentOf(good), 0],
  ["something is wrong", judgmentOf(differing, unjudged, bad), 1],
  ["answers differ", judgmentOf(differing, good), 2],
  ["something could not be judged", judgmentOf(differing, unjudged), 3],
  ["nothing could", { ...judgmentOf(), problem: "The shop gave no answer" }, 3],
  ["a case does not apply", judgmentOf(good, skipped), 0],
])("the exit code when %s", (_what, of, code) => {
  expect(exitCodeOf(of)).toBe(code);
});

test("the last lines say how many cases ran, and why the others did not", () => {
  const lastLines = (...of: Finding[]) =>
    renderJudgment(judgmentOf(...of), "base")
      .split("\n\n")
      .at(-1);
  expect(lastLines(good)).toBe("The one case is good.");
  expect(lastLines(good, good)).toBe("All 2 cases are good.");
  expect(lastLines(good, good, skipped)).toBe(
    "2 of 3 cases ran, and are good.\nNot run: two-routes: sells nothing else",
  );
  expect(lastLines(bad, good)).toBe("1 of 2 cases is bad. The same run again: --seed 7");
  expect(lastLines(bad, bad, differing)).toBe(
    "2 of 3 cases are bad, 1 of 3 cases differs. The same run again: --seed 7",
  );
  expect(lastLines(differing, good, unjudged)).toBe(
    "1 of 2 cases differs. The same run again: --seed 7\nNot run: two-routes: the shop had ended",
  );
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
  const text = renderJudgment(judgmentOf({ ...bad, notes: ["it said \u001b[2J\u009b"] }, good), "base");
  expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
  expect(text).toContain("it said \\u001b[2J\\u009b");
  expect(text).toMatch(/^plain /m);
});
