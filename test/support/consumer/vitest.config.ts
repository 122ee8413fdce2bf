import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** An integrator's project, run by vitest.test.ts. Its files end in .spec.ts, so that no other run includes them. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  test: {
    include: ["*.spec.ts"],
    globalSetup: ["./global-setup.ts"],
    maxWorkers: 2,
    testTimeout: 20_000,
    // As what is installed: left to Node.
    server: { deps: { external: [/\/src\//] } },
  },
});
