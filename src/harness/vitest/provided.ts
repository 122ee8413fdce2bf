import type { PoolAddress } from "../pool/lease.ts";

/** The name under which the global setup gives the workers the URL of the lease server. */
export const providedKey = "x402-facilitator-kit";

declare module "vitest" {
  interface ProvidedContext {
    "x402-facilitator-kit": PoolAddress;
  }
}
