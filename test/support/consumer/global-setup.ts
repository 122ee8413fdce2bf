import { createGlobalSetup } from "../../../src/harness/vitest/global-setup.ts";

export default createGlobalSetup({
  networks: ["base"],
  maxHarnesses: Number(process.env.MAX_HARNESSES ?? 2),
});
