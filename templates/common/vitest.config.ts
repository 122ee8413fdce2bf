import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { globalSetup: ["x402-facilitator-kit/vitest/global-setup"], testTimeout: 60_000 },
});
