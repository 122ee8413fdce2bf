import { inject } from "vitest";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Harness } from "../api/harness-api.ts";
import { leaseFrom } from "../pool/lease.ts";
import { providedKey } from "./provided.ts";

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
