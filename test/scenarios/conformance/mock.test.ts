import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import { type MockServer, startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { runScenario } from "../../../src/judge/conformance/run-conformance.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { sendAndGiveUp } from "../../support/conformance/send-and-give-up.ts";
import { rowsByPolicy } from "../../support/fixtures/rows-by-policy.ts";

/* Every row of the table against the mock server, over real connections. */

describe.each(rowsByPolicy)("where payments may go to: $payTo", ({ payTo, rows }) => {
  let mock: MockServer;
  beforeAll(async () => {
    mock = await startMockServer({ networks: ["base", "polygon"], payTo });
  });
  beforeEach(() => mock.reset());
  afterAll(() => mock?.close());

  test.each(rows)("$name", async (scenario) => {
    const { environment } = mock;
    const { origin } = new URL(mock.url);
    const send = (request: FixtureRequest) => sendRequest(origin, request);
    const arrange = async () => {
      mock.scenario(scenario.name).delay(1);
      const isAnswered = scenario.situation !== "connection.never_answers";
      return { send: isAnswered ? send : (request: FixtureRequest) => sendAndGiveUp(origin, request) };
    };
    expect(await runScenario(scenario, { environment, send, arrange })).toEqual([]);
  });
});
