/**
 * Tests the contracts as they are published: `node scripts/test-contracts.ts`, with any arguments for `forge test`.
 * Also exits with 1 if the files generated from the contracts are stale.
 */
import { runForge } from "./forge.ts";
import { compileContracts } from "./generate-contracts.ts";
import { writeGenerated } from "./write-generated.ts";

writeGenerated(compileContracts(), { check: true });
const status = runForge(["test", ...process.argv.slice(2)], { env: { FOUNDRY_PROFILE: "tests" } });
if (status !== 0) process.exitCode = status;
