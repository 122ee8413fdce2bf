/**
 * Prints what the fixtures weigh in a browser, minified and gzipped, without msw: whole, and by what is imported.
 *
 * Exits with 1 when the whole is above the limit.
 */
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";

/** In bytes, of all that `createFixtures` needs. */
const limit = 80_000;

const entries = {
  "createFixtures, with everything that it needs": "export { createFixtures } from '@fixtures'",
  "the table of scenarios alone": "export { scenarios } from '@fixtures'",
  "signing as a test payer alone": "export { signForScenario } from '@fixtures'",
  "the test payers alone": "export { testPayers } from '@fixtures'",
};

const fixtures = fileURLToPath(new URL("../src/fixtures/index.ts", import.meta.url));

/** The code that an entry becomes, and what of it comes from where. */
async function bundle(entry: string): Promise<{ code: string; sources: ReadonlyMap<string, number> }> {
  const build = await rolldown({
    input: "entry",
    platform: "browser",
    external: ["msw"],
    plugins: [
      {
        name: "entry",
        resolveId: (id) => (id === "entry" ? id : id === "@fixtures" ? fixtures : null),
        load: (id) => (id === "entry" ? entry : null),
      },
    ],
  });
  const { output } = await build.generate({ minify: true, codeSplitting: false });
  const [chunk] = output;
  const sources = new Map<string, number>();
  for (const [id, { renderedLength }] of Object.entries(chunk.modules)) {
    const [, name = "this package"] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id) ?? [];
    sources.set(name, (sources.get(name) ?? 0) + renderedLength);
  }
  return { code: chunk.code, sources };
}

let isTooLarge = false;
for (const [name, entry] of Object.entries(entries)) {
  const { code, sources } = await bundle(entry);
  const gzipped = gzipSync(code, { level: 9 }).length;
  console.log(`${kilobytes(gzipped)} gzipped, ${kilobytes(code.length)} minified: ${name}`);
  const total = [...sources.values()].reduce((sum, length) => sum + length, 0);
  const parts = [...sources].sort(([, a], [, b]) => b - a).filter(([, length]) => length > total / 100);
  console.log(
    `  ${parts.map(([source, length]) => `${source} ${Math.round((100 * length) / total)} %`).join(", ")}`,
  );
  isTooLarge ||= gzipped > limit;
}
if (isTooLarge) {
  console.error(`That is above the limit of ${kilobytes(limit)}.`);
  process.exitCode = 1;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
