import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { type Route, routes } from "../../../src/protocol/routes.ts";
import { signedRequest, startTestHarness } from "../../support/service.ts";

/*
 * One table of routes: the service and the mock have each of them at each of its paths, and describe them.
 */

let harness: RunningHarness;
let mock: MockServer;
beforeAll(async () => {
  [harness, mock] = await Promise.all([startTestHarness({ networks: ["base"] }), startMockServer()]);
});
afterAll(() => Promise.all([harness?.close(), mock?.close()]));

const table = Object.entries<Route>(routes).flatMap(([name, { method, paths }]) =>
  paths.map((path) => ({ name, method, path })),
);

describe.each([
  ["service", () => harness.description.facilitator.url],
  ["mock", () => mock.url],
])("the %s", (_, urlOf) => {
  const originOf = () => urlOf().replace("/v1", "");

  test.each(table)("has $method $path", async ({ name, method, path }) => {
    const body = method === "POST" ? JSON.stringify(await signedRequest(harness)) : null;
    const headers = { authorization: localOrganization.apiKey, "content-type": "application/json" };
    const answer = await fetch(`${originOf()}${path}`, { method, headers, body });
    const isOff = name === "listResources" || name === "searchResources";
    expect(answer.status).toBe(name === "getSettlement" || isOff ? 404 : 200);
    const json = await answer.json();
    if (isOff) expect(json).toMatchObject({ detail: expect.stringContaining("DISCOVERY=true") });
    if (name === "settle") expect(json).toMatchObject({ success: true });
    if (name === "verify") expect(json).toMatchObject({ isValid: true });
    if (name === "health") expect(json).toEqual({ status: "ok" });
    if (name === "readyz") expect(json).toMatchObject({ status: "ready" });
  });

  test("describes every path of the table at /openapi.json", async () => {
    const answer = await fetch(`${originOf()}/openapi.json`);
    const { paths } = z.object({ paths: z.record(z.string(), z.unknown()) }).parse(await answer.json());
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(table.map(({ path }) => path)));
  });
});
