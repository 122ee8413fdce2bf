import { expect, test } from "vitest";
import { findScenario } from "../../fixtures/cases/scenarios.ts";
import { createFixtureEngine } from "../../fixtures/engine/engine.ts";
import { compareContract } from "./compare.ts";
import { renderJunit } from "./conformance-report.ts";

test("the report is XML whatever a facilitator answers", () => {
  const facilitator = {
    baseUrl: "http://127.0.0.1:1/?a&b",
    access: { prefix: "/v1", auth: "bare", authHeader: "authorization" } as const,
    environment: createFixtureEngine().environment,
    isKit: false,
    uptoSubmitter: undefined,
    hasFunds: true,
    hasBlacklist: true,
    unfitPayers: new Map<string, string>(),
    versions: new Set([1, 2] as const),
    compare: compareContract,
  };
  const got = `]]></failure>"&'\u0000\u001b\ud800\n<b>`;
  const xml = renderJunit(facilitator, [
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
  ]);
  expect(xml).toMatchInlineSnapshot(`
    "<?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="x402 conformance of http://127.0.0.1:1/?a&#38;b/v1" tests="3" failures="1" errors="0" skipped="1" time="1.512">
      <testsuite name="verify, version 1" tests="1" failures="0" errors="0" skipped="0" time="0.012">
        <testcase name="verify.success.funded" classname="verify.v1.success" time="0.012"/>
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
