import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectHarness, createHarness, type Harness } from "../../../src/harness/index.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";

/* Going back to a moment of all chains and the ledger together. */

let harness: Harness<"base" | "polygon">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base", "polygon"] });
});
afterAll(() => harness?.close());
beforeEach(() => harness.reset());

const earned = () =>
  Promise.all(
    (["base", "polygon"] as const).map((name) =>
      harness.networks[name].balanceOf(harness.organization.recipient),
    ),
  );

describe("a snapshot", () => {
  test("brings back chains and ledger, as often as is wanted", async () => {
    const first = await harness.pay({ network: "base", amount: 1n });
    await harness.as(testKeys.minimumAmount.apiKey).pay({ network: "base", amount: 1n });
    const request = await harness.sign({ network: "polygon", amount: 2n });
    const snapshot = await harness.snapshot();
    for (const _ of [1, 2, 3]) {
      expect((await harness.settle(request)).body).toMatchObject({ success: true });
      expect((await harness.settle(request)).body).toMatchObject({ success: false });
      await harness.as(testKeys.minimumAmount.apiKey).pay({ network: "base", amount: 1_000_000n });
      await harness.pay({ network: "base", amount: 3n });
      expect(await earned()).toEqual([1_000_004n, 2n]);
      await snapshot.restore();
      expect(await earned()).toEqual([1n, 0n]);
    }
    // What was paid before it is still known to be paid.
    expect((await harness.settle(first.request)).body).toMatchObject({
      success: false,
      errorReason: "invalid_transaction_state",
    });
  });

  test("keeps a chain's distance to the clock, and ends faults", async () => {
    const { base, polygon } = harness.networks;
    await base.advanceTime(7_200);
    const snapshot = await harness.snapshot();
    await polygon.advanceTime(500_000);
    await harness.faults.on("base").hang();
    await snapshot.restore();
    const clock = BigInt(Math.floor(Date.now() / 1_000));
    expect(Number((await base.now()) - clock)).toBeGreaterThan(7_190);
    expect(Number((await polygon.now()) - clock)).toBeLessThan(10);
    expect((await harness.pay({ network: "base" })).settle.body.success).toBe(true);
  });

  test("can be gone back to past later ones, which are gone then, as all are at a reset", async () => {
    const connected = await connectHarness(harness.facilitator.url, ["base"]);
    const early = await connected.snapshot();
    await harness.pay({ network: "base", amount: 5n });
    const late = await harness.snapshot();
    await harness.pay({ network: "base", amount: 5n });
    await late.restore();
    expect(await earned()).toEqual([5n, 0n]);
    await early.restore();
    expect(await earned()).toEqual([0n, 0n]);
    await expect(late.restore()).rejects.toThrow("The snapshot is gone");
    await harness.pay({ network: "base", amount: 5n });
    await early.restore();
    await harness.reset();
    await expect(early.restore()).rejects.toThrow("The snapshot is gone");
    expect((await harness.pay({ network: "base" })).settle.body.success).toBe(true);
  });
});

test("runs with a seed stay repeatable through a snapshot", async () => {
  await using seeded = await createHarness({ networks: ["base"], seed: 7 });
  await seeded.pay({ network: "base" });
  const snapshot = await seeded.snapshot();
  const pay = async () => (await seeded.pay({ network: "base" })).receipt?.blockHash;
  const first = await pay();
  await snapshot.restore();
  expect(await pay()).toBe(first);
});
