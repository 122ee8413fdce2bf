import { defineConfig } from "vitest/config";

/** Tests of real processes on a busy machine: in CI a failed one is tried twice more, and the retry is reported. */
const retry = process.env.CI ? 2 : 0;

/** What starts nodes, databases or servers: few files at a time, and time-outs for a loaded machine. */
const processes = { retry, maxWorkers: 3, testTimeout: 60_000, hookTimeout: 60_000 };

const chain = "src/**/*.chain.test.ts";
const database = "{src,test}/**/*.database.test.ts";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["src/**/*.test.ts", "test/*.test.ts"], exclude: [chain, database] } },
      {
        // What uses msw, once more with its second major version.
        resolve: { alias: [{ find: /^msw(?=\/|$)/, replacement: "msw-2" }] },
        test: { name: "msw-2", env: { MSW_MAJOR: "2" }, include: ["src/**/*.msw.test.ts"] },
      },
      { test: { ...processes, name: "chain", include: [chain] } },
      { test: { ...processes, name: "database", include: [database] } },
      { test: { ...processes, name: "scenarios", include: ["test/scenarios/**/*.test.ts"] } },
    ],
  },
});
