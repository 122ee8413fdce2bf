import type { NetworkName } from "../protocol/networks.ts";

/** Under which name the global setup tells the workers where harnesses are leased. */
export const providedKey = "x402-facilitator-kit";

/** Where harnesses are leased, and the networks that each of them has. */
export type Provided = { url: string; networks: readonly NetworkName[] };

declare module "vitest" {
  interface ProvidedContext {
    "x402-facilitator-kit": Provided;
  }
}
