/**
 * Tests the contracts as they are published: `node scripts/test-contracts.ts`, with any arguments of `forge test`. It ends
 * with 1 also where what is generated of them is not what they compile to.
 */
import { runForge } from "./forge.ts";
import { compileContracts } from "./generate-contracts.ts";
import { writeGenerated } from "./write-generated.ts";

writeGenerated(compileContracts(), { check: true });
const status = runForge(["test", ...process.argv.slice(2)], { env: { FOUNDRY_PROFILE: "tests" } });
if (status !== 0) process.exitCode = status;
