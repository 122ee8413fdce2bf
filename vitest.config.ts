import { defineConfig } from "vitest/config";

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
        // Real anvil processes: fewer files at a time, and patience for a loaded machine.
        test: {
          name: "chain",
          include: chain,
          exclude: ["test/interop/**"],
          maxWorkers: 2,
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "interop",
          include: ["test/interop/**/*.test.ts"],
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
