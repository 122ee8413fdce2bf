import { expect, test } from "vitest";
import { findScenario } from "../../fixtures/cases/scenarios.ts";
import { createFixtureEngine } from "../../fixtures/engine/engine.ts";
import { compareContract } from "./compare.ts";
import { createProgress, renderJunit } from "./conformance-report.ts";
import type { ConformanceResult } from "./run-conformance.ts";

test("the report is XML whatever a facilitator answers", () => {
  const facilitator = {
    baseUrl: "http://127.0.0.1:1/?a&b",
    access: { prefix: "/v1", auth: "bare", authHeader: "authorization" } as const,
    environment: createFixtureEngine().environment,
    isKit: false,
    uptoSubmitter: undefined,
    lacksFunds: undefined,
    testPayers: new Set<never>(),
    money: undefined,
    hasBlacklist: true,
    unfitPayers: new Map<string, string>(),
    versions: new Set([1, 2] as const),
    compare: compareContract,
  };
  const got = `]]></failure>"&'\u0000\u001b\ud800\n<b>`;
  const results: readonly ConformanceResult[] = [
    { scenario: findScenario("verify.success"), outcome: "passed", tookMs: 12 },
    {
      scenario: findScenario("settle.unauthorized.no_key"),
      outcome: "failed",
      tookMs: 1_500,
      level: "wrong",
      differences: [
        { at: "status", expected: "401", got: "200" },
        { at: "body", expected: "nothing", got },
      ],
    },
    { scenario: findScenario("settle.slow"), outcome: "not_run", why: "needs trouble", lacking: "rpc_slow" },
    {
      scenario: findScenario("verify.insufficient_funds"),
      outcome: "failed",
      level: "differs",
      tookMs: 1,
      status: 200,
      differences: [{ at: "body.payer", expected: "one", got: "another" }],
    },
  ];
  const xml = renderJunit(facilitator, { results });
  expect(xml).toMatchInlineSnapshot(`
    "<?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="x402 conformance of http://127.0.0.1:1/?a&#38;b/v1" tests="4" failures="1" errors="0" skipped="1" time="1.513">
      <testsuite name="verify, version 1" tests="2" failures="0" errors="0" skipped="0" time="0.013">
        <testcase name="verify.success.funded" classname="verify.v1.success" time="0.012"/>
        <testcase name="verify.insufficient_funds.empty" classname="verify.v1.insufficient_funds" time="0.001">
          <system-out>differs: The payer has nothing of the asset.
    body.payer: expected one, got another</system-out>
        </testcase>
      </testsuite>
      <testsuite name="settle, version 1" tests="2" failures="1" errors="0" skipped="1" time="1.500">
        <testcase name="settle.unauthorized.no_key" classname="settle.v1.unauthorized" time="1.500">
          <failure type="wrong" message="status: expected 401, got 200, and 1 more">There is no API key: 401.
    status: expected 401, got 200
    body: expected nothing, got ]]&#62;&#60;/failure&#62;&#34;&#38;'���&#10;&#60;b&#62;</failure>
        </testcase>
        <testcase name="settle.slow.late_settle" classname="settle.v1.slow" time="0.000">
          <skipped message="needs trouble: rpc_slow"/>
        </testcase>
      </testsuite>
    </testsuites>
    "
  `);
});

test("a line every five seconds says how far the run is", () => {
  const lines: string[] = [];
  let now = 0;
  const onResult = createProgress(
    400,
    (line) => void lines.push(line),
    () => now,
  );
  const scenario = findScenario("verify.success");
  const failed = (level: "wrong" | "differs") =>
    ({ scenario, outcome: "failed", tookMs: 1, level, differences: [] }) as const;
  const results: [at: number, ConformanceResult][] = [
    [1_000, { scenario, outcome: "passed", tookMs: 1 }],
    [4_999, failed("wrong")],
    [5_000, failed("differs")],
    [5_001, failed("differs")],
    [60_000, { scenario, outcome: "passed", tookMs: 1 }],
  ];
  for (const [at, result] of results) {
    now = at;
    onResult(result);
  }
  expect(lines).toEqual(["3 of 400 scenarios: 1 wrong, 1 differ", "5 of 400 scenarios: 1 wrong, 2 differ"]);
});
