import { createTest } from "../../../src/vitest/index.ts";

const test = createTest(["base"]);

test("takes its process along", async ({ harness }) => {
  await harness.pay({ network: "base" });
  process.kill(process.pid, "SIGKILL");
});
