import { test as base, expect, inject, type TestAPI } from "vitest";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Harness } from "../api/harness-api.ts";
import { toBeSettled } from "../matchers.ts";
import { leaseFrom, providedKey } from "../pool/lease.ts";

declare module "vitest" {
  interface Matchers<R extends void | Promise<void>, T> {
    /** Passes if the payment was settled; otherwise the message says why not and how to fix it. */
    toBeSettled: () => R;
  }
}

expect.extend({ toBeSettled });

/** The fixture of a test: a fresh harness that no other test uses. */
export type HarnessFixtures<N extends NetworkName = BuiltInNetworkName> = { harness: Harness<N> };

/**
 * vitest's `test` with a `harness` fixture, typed for the networks that the global setup starts. Each test that uses the
 * fixture leases its own harness, so tests may run concurrently. If a test fails, the journal of its payments is printed.
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

/** Prints the journal of a failed test, which is the first thing its author needs. */
async function printJournal({ journal }: Pick<Harness, "journal">, test: string): Promise<void> {
  const text = await journal.describe().catch(String);
  if (text !== "") console.error(`What the facilitator did in "${test}":\n\n${text}\n`);
}

/** vitest's `test` with a `harness` fixture for all networks that the global setup starts. */
export const test = createTest();

/**
 * Leases a fresh harness from the pool of the global setup for exclusive use; closing it returns it to the pool. The
 * fixture of `test` does this for each test; use this if several tests share one harness.
 *
 * @param networks the networks needed; all of the pool's by default
 * @throws {KitError} if there is no pool, or it does not run one of the networks
 *
 * @example
 * const harness = await leaseHarness(["base"]);
 * afterAll(() => harness.close());
 */
export async function leaseHarness<const N extends NetworkName = BuiltInNetworkName>(
  networks?: readonly N[],
): Promise<Harness<N>> {
  const provided = inject(providedKey);
  if (provided === undefined) {
    throw new KitError("There is no harness to lease: the global setup of x402-facilitator-kit is missing", {
      hints: ['In vitest.config.ts: test: { globalSetup: ["x402-facilitator-kit/vitest/global-setup"] }'],
    });
  }
  return leaseFrom(provided, networks);
}
