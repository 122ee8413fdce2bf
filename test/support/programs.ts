import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** The programs that tests start as processes, and the modules that those import; paths from the repository's root. */
export const programs = [
  "src/cli/bin.ts",
  "src/harness/vitest/global-setup.ts",
  "src/harness/vitest/index.ts",
  "test/support/crash/service-child.ts",
  "test/support/harness/create-and-wait.ts",
  "test/support/judge/buyer.ts",
  "test/support/judge/public-shop.ts",
  "test/support/judge/shop.ts",
  "test/support/ledger/claim-many.ts",
  "test/support/recovery-child.ts",
  "test/support/start-and-wait.ts",
] as const;

/** The environment variable with the folder of the bundles from `programs-setup.ts`. */
export const programsVariable = "X402_TEST_PROGRAMS";

/** The file to run for a program: its bundle, or its source if there is none. */
export function programFile(program: (typeof programs)[number]): string {
  const folder = process.env[programsVariable];
  return folder === undefined ? `${repository}${program}` : `${folder}/${program.replace(/\.ts$/, ".js")}`;
}
