import { expect } from "vitest";
import { createTest } from "../../../src/harness/vitest/index.ts";

const test = createTest(["base"]);

/** Tests that run at the same time, each of which fails if another one uses its chain or its service. */
export function isolationTests(): void {
  test.concurrent.for([1n, 2n, 3n, 4n, 5n])("payments of %d, and no others", async (amount, { harness }) => {
    const { base } = harness.networks;
    const { recipient } = harness.organization;
    const started = await base.now();
    expect(Math.abs(Number(started) - Date.now() / 1_000)).toBeLessThan(5);
    for (let payments = 1n; payments <= 3n; payments++) {
      const { settle } = await harness.pay({ network: "base", amount });
      expect(settle.body.success).toBe(true);
      expect(await base.balanceOf(recipient)).toBe(amount * payments);
    }
    await base.advanceTime(Number(amount) * 1_000);
  });
}
