import { test as base, type TestAPI } from "vitest";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import type { Harness } from "../api/harness-api.ts";
import { leaseHarness } from "./lease-harness.ts";

export { leaseHarness } from "./lease-harness.ts";

/** What a test gets that asks for it: a harness of its own, as new. */
export type HarnessFixtures<N extends NetworkName = BuiltInNetworkName> = { harness: Harness<N> };

/**
 * vitest's `test` with a `harness` fixture, typed for the networks that the global setup starts. Each test that asks
 * for the harness leases one of its own, so that tests may run concurrently. When one fails, what the facilitator did
 * about its payments is printed.
 *
 * @example
 * const test = createTest(["base", "polygon"]);
 * test.concurrent("is paid", async ({ harness, expect }) => {
 *   const { settle } = await harness.pay({ network: "base" });
 *   expect(settle.body.success).toBe(true);
 * });
 */
export function createTest<const N extends NetworkName = BuiltInNetworkName>(
  networks?: readonly N[],
): TestAPI<HarnessFixtures<N>> {
  return base.extend<HarnessFixtures<N>>({
    harness: async ({ task }, use) => {
      await using harness = await leaseHarness(networks);
      await use(harness);
      if (task.result?.state === "fail") await printJournal(harness, task.name);
    },
  });
}

/** What the service did about the payments of a test that failed is what its author asks next. */
async function printJournal({ journal }: Pick<Harness, "journal">, test: string): Promise<void> {
  const text = await journal.describe().catch(String);
  if (text !== "") console.error(`What the facilitator did in "${test}":\n\n${text}\n`);
}

/** vitest's `test` with a `harness` fixture of all networks that the global setup starts. */
export const test = createTest();
