import { expect, test } from "vitest";
import { createLogger } from "../../../src/observe/log/logger.ts";
import { post, signedRequest, startTestHarness } from "../../support/service.ts";

test("a service that is closed right after its answers still records that they were delivered", async () => {
  const lines: string[] = [];
  const logger = createLogger("warn", { write: (line: string) => void lines.push(line) });
  const harness = await startTestHarness({ networks: ["base"], logger });
  const bodies = await Promise.all(Array.from({ length: 20 }, () => signedRequest(harness)));
  const answers = await Promise.all(bodies.map((body) => post(harness, "settle", body)));
  await harness.close();
  expect(answers.every(({ body }) => body.success === true)).toBe(true);
  expect(lines).toEqual([]);
});
