import type { NetworkName } from "../protocol/networks.ts";

/** The name under which the global setup gives the workers the URL of the lease server. */
export const providedKey = "x402-facilitator-kit";

/** Where harnesses are leased, and the networks that each of them has. */
export type Provided = { url: string; networks: readonly NetworkName[] };

declare module "vitest" {
  interface ProvidedContext {
    "x402-facilitator-kit": Provided;
  }
}
