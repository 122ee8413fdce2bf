import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createTest } from "../../../src/harness/vitest/index.ts";

const test = createTest(["base"]);

test("waits to be killed", async ({ harness }) => {
  await harness.pay({ network: "base" });
  writeFileSync(process.env.READY_FILE ?? "", harness.facilitator.url);
  await sleep(19_000);
});
