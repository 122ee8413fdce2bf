/**
 * Prints what the fixtures weigh in a browser, minified and gzipped, without msw: whole, and by what is imported.
 *
 * Exits with 1 when the whole is above the limit.
 */
import { bundleLimit, measureBundle } from "./fixtures/measure-bundle.ts";

const entries = {
  "createFixtures, with everything that it needs": "export { createFixtures } from '@fixtures'",
  "the table of scenarios alone": "export { scenarios } from '@fixtures'",
  "signing as a test payer alone": "export { signForScenario } from '@fixtures'",
  "the test payers alone": "export { testPayers } from '@fixtures'",
};

let isTooLarge = false;
for (const [name, entry] of Object.entries(entries)) {
  const { gzipped, minified, shares } = await measureBundle(entry);
  console.log(`${kilobytes(gzipped)} gzipped, ${kilobytes(minified)} minified: ${name}`);
  const parts = [...shares].sort(([, a], [, b]) => b - a).filter(([, share]) => share > 0.01);
  console.log(`  ${parts.map(([source, share]) => `${source} ${Math.round(100 * share)} %`).join(", ")}`);
  isTooLarge ||= gzipped > bundleLimit;
}
if (isTooLarge) {
  console.error(`That is above the limit of ${kilobytes(bundleLimit)}.`);
  process.exitCode = 1;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
