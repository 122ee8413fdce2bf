import { gasSponsorings, type ServedNetwork } from "../protocol/checks.ts";
import { create2Deployer } from "../protocol/create2.ts";

/** What a facilitator of local chains takes besides, so that every way to pay can be tried there. */
export const localTerms = {
  gasSponsoring: gasSponsorings,
  walletFactories: [create2Deployer],
} as const satisfies Partial<ServedNetwork>;
