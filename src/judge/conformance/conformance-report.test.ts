import { expect, test } from "vitest";
import { findScenario, type RowName } from "../../fixtures/cases/scenarios.ts";
import { createFixtureEngine } from "../../fixtures/engine/engine.ts";
import { renderHtml } from "../frame/render-html.ts";
import { renderJunit } from "../frame/render-junit.ts";
import type { Finding } from "../frame/run-cases.ts";
import { compareContract } from "./compare.ts";
import { createProgress, reportConformance } from "./conformance-report.ts";
import { type ConformanceFacts, createConformanceJudge } from "./judge-answers.ts";

test("the report is XML, and a page, whatever a facilitator answers", () => {
  const facilitator = {
    baseUrl: "http://127.0.0.1:1/?a&b",
    access: { prefix: "/v1", auth: "bare", authHeader: "authorization" } as const,
    environment: createFixtureEngine().environment,
    isKit: false,
    uptoSubmitter: undefined,
    channels: undefined,
    lacksFunds: undefined,
    testPayers: new Set<never>(),
    money: undefined,
    hasBlacklist: true,
    unfitPayers: new Map<string, string>(),
    versions: new Set([1, 2] as const),
    compare: compareContract,
  };
  const got = `]]></failure>"&'\u0000\u001b\ud800\n<b>`;
  const judge = createConformanceJudge(facilitator);
  const findingOf = (name: RowName, change: Partial<ConformanceFacts> = {}) => {
    const scenario = findScenario(name);
    const none = { differences: [], compared: undefined, before: [], contradictions: [] };
    const facts = { scenario, ...none, ...change };
    const { name: full, means: situation, operation: suite } = scenario;
    return { name: full, situation, suite, seen: [], notes: [], ...judge(facts), facts, tookMs: 12 };
  };
  const json = (status: number, body: object) => ({ kind: "json", status, headers: {}, body }) as const;
  const findings: Finding<ConformanceFacts>[] = [
    findingOf("verify.success"),
    findingOf("settle.invalid_payload.short_nonce", {
      differences: [
        { at: "body.success", expected: "false", got: "true" },
        { at: "body", expected: "nothing", got },
      ],
    }),
    {
      ...findingOf("settle.slow"),
      ...{ verdict: "not_run", level: "not_run", text: "not run", facts: undefined, tookMs: 0 },
      ...{ notes: ["needs trouble"], lacking: "rpc_slow" },
    },
    findingOf("verify.insufficient_funds", {
      differences: [{ at: "body.payer", expected: "one", got: "another" }],
      compared: {
        expected: json(200, { isValid: false, situation: "balance_too_small" }),
        actual: json(200, { isValid: false }),
      },
    }),
  ];
  const report = reportConformance(facilitator, { findings, problem: undefined }, { parallel: 1 });
  expect(report.json).toMatchObject({ passed: 1, failed: 2, wrong: 1, differs: 1, notRun: 1 });
  expect(report.exitCode).toBe(1);
  const xml = renderJunit(report);
  for (const page of [xml, renderHtml(report)]) {
    expect(page.replaceAll("\n", "")).not.toMatch(/\p{Cc}|<b>|&b/u);
  }
  expect(xml).toContain(
    'x402 conformance of http://127.0.0.1:1/?a&#38;b/v1 on base" tests="4" failures="1" errors="0" skipped="1"',
  );
  expect(xml).toContain('<failure message="body.success: expected false, got true, and 1 more">');
  expect(xml).toContain("]]&#62;&#60;/failure&#62;&#34;&#38;'���&#10;&#60;b&#62;</failure>");
  expect(xml).toContain('<skipped message="needs trouble: rpc_slow"/>');
});

test("a line every five seconds says how far the run is", () => {
  const lines: string[] = [];
  let now = 0;
  const onFinding = createProgress(
    400,
    (line) => void lines.push(line),
    () => now,
  );
  const found = [
    [1_000, "good"],
    [4_999, "wrong"],
    [5_000, "differs"],
    [5_001, "differs"],
    [60_000, "good"],
  ] as const;
  for (const [at, level] of found) {
    now = at;
    onFinding({ level });
  }
  expect(lines).toEqual(["3 of 400 scenarios: 1 wrong, 1 differ", "5 of 400 scenarios: 1 wrong, 2 differ"]);
});
