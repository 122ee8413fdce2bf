import { defineConfig } from "vitest/config";

/** Real processes on a machine that does other things too: a test that fails there gets a second try, and is told of. */
const retry = process.env.CI ? 2 : 0;

const chain = ["src/chain/**/*.test.ts", "src/harness/**/*.test.ts", "test/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts"],
          exclude: chain,
        },
      },
      {
        // What uses msw, once more with its second major version.
        resolve: { alias: [{ find: /^msw(?=\/|$)/, replacement: "msw-2" }] },
        test: {
          name: "msw-2",
          env: { MSW_MAJOR: "2" },
          include: ["src/fixtures/**/*.msw.test.ts"],
        },
      },
      {
        // Real anvil processes: fewer files at a time, and patience for a loaded machine.
        test: {
          name: "chain",
          include: chain,
          exclude: ["test/interop/**"],
          retry,
          maxWorkers: 3,
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          retry,
          maxWorkers: 3,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
