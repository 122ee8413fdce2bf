import { createGlobalSetup } from "x402-facilitator-kit/vitest/global-setup";

/** A chain and a facilitator, once for all tests; each test gets them as new. */
export default createGlobalSetup({ networks: ["base"] });
