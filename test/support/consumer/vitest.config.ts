import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** The folder of the bundled package, set by whoever starts this: each worker would take seconds to load the sources. */
const { X402_TEST_PROGRAMS: bundles } = process.env;
const alias =
  bundles === undefined ? [] : [{ find: /^.*\/src\/(.*)\.ts$/, replacement: `${bundles}/src/$1.js` }];

/** An integrator's project, run by vitest.test.ts. Its files end in .spec.ts, so that no other run includes them. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  resolve: { alias },
  test: {
    include: ["*.spec.ts"],
    globalSetup: ["./global-setup.ts"],
    maxWorkers: 2,
    testTimeout: 20_000,
    // Left to Node, like an installed package.
    server: { deps: { external: [/\/src\//] } },
  },
});
