// Started by bad-input.test.ts as a separate process, which is then killed.
import { createHarness } from "../../../src/harness/index.ts";

await using harness = await createHarness({ networks: ["base", "polygon"] });
console.log(harness.facilitator.url);
await new Promise((resolve) => setTimeout(resolve, 60_000));
