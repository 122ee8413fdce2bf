import { createTest } from "../../../src/harness/vitest/index.ts";

const test = createTest(["base"]);

test("takes its process along", async ({ harness }) => {
  await harness.pay({ network: "base" });
  process.kill(process.pid, "SIGKILL");
});
