import { test as base, expect, inject, type TestAPI } from "vitest";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Harness } from "../api/harness-api.ts";
import { toBeSettled } from "../matchers.ts";
import { leaseFrom, providedKey } from "../pool/lease.ts";

declare module "vitest" {
  interface Matchers<R extends void | Promise<void>, T> {
    /** Passes if the payment was settled; otherwise the message says why not, and what to do. */
    toBeSettled: () => R;
  }
}

expect.extend({ toBeSettled });

/** The fixture of a test: a fresh harness of its own. */
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

/** Prints the service's work on the payments of a failed test: its author asks for that next. */
async function printJournal({ journal }: Pick<Harness, "journal">, test: string): Promise<void> {
  const text = await journal.describe().catch(String);
  if (text !== "") console.error(`What the facilitator did in "${test}":\n\n${text}\n`);
}

/** vitest's `test` with a `harness` fixture of all networks that the global setup starts. */
export const test = createTest();

/**
 * Leases a harness from the pool of the global setup. It is for this test alone, and as new; closing gives it back.
 * The fixture of `test` does this for each test; this is for what several tests share.
 *
 * @param networks those that are needed; all of the pool's by default
 * @throws {KitError} when there is no pool, or it runs without one of the networks
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
