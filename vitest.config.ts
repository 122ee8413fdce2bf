import { defineConfig } from "vitest/config";
import { openPrivateCacheFolder } from "./src/cli/kit/compile-cache.ts";

// For all the processes that tests start: to compile their modules anew takes them longer than all else of their start.
process.env.NODE_COMPILE_CACHE ??= openPrivateCacheFolder() ?? "";

/** Tests of real processes on a busy machine: in CI a failed one is tried twice more, and the retry is reported. */
const retry = process.env.CI ? 2 : 0;

/**
 * Few files at a time: many start nodes, databases or servers. More than two cores have, since half of them mostly wait
 * for blocks. The same for each project, or they would run in turns.
 */
const maxWorkers = 4;

const observers = "test/support/observers-setup.ts";

/** What is awaited comes, however busy the machine is: the time-out of the test limits that. Mostly it comes soon. */
const patient = { poll: { timeout: 50_000, interval: 20 } };

/** In processes that many files share: loading viem anew for each would take longer than many tests do. */
const shared = { maxWorkers, isolate: false, setupFiles: observers, expect: patient, testTimeout: 30_000 };

/** What starts nodes, databases or servers: time-outs for a loaded machine. */
const processes = {
  ...shared,
  retry,
  testTimeout: 60_000,
  hookTimeout: 60_000,
  setupFiles: [observers, "test/support/after-each-file.ts"],
  globalSetup: ["test/support/programs-setup.ts", "test/support/postgres-setup.ts"],
};

const chain = "src/**/*.chain.test.ts";
const msw = "src/**/*.msw.test.ts";
const database = "{src,test}/**/*.database.test.ts";

/**
 * What a change rarely breaks and takes long: the package as it is installed, programs of other languages, how processes end, the
 * judges, and short runs of the endurance.
 */
const release = "test/scenarios/**/*.release.test.ts";

const alone = "{src,test/scenarios}/**/*.alone.test.ts";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: "unit",
          include: ["src/**/*.test.ts", "test/*.test.ts"],
          exclude: [chain, database, msw, alone],
        },
      },
      // With each of msw's two major versions. Its handlers belong to the whole process, so each file has its own.
      { test: { name: "msw", maxWorkers, expect: patient, testTimeout: 30_000, include: [msw] } },
      {
        resolve: { alias: [{ find: /^msw(?=\/|$)/, replacement: "msw-2" }] },
        test: {
          name: "msw-2",
          maxWorkers,
          expect: patient,
          testTimeout: 30_000,
          env: { MSW_MAJOR: "2" },
          include: [msw],
        },
      },
      // One project, or each of its kinds would load the same modules in workers of its own.
      {
        test: {
          ...processes,
          name: "processes",
          include: [chain, database, "test/scenarios/**/*.test.ts"],
          exclude: [release, alone],
        },
      },
      // What puts other modules in the place of the product's, which a process loads once.
      {
        test: {
          ...processes,
          name: "alone",
          isolate: true,
          globalSetup: [],
          include: [alone],
        },
      },
      { test: { ...processes, name: "release", include: [release] } },
    ],
  },
});
