/**
 * Writes the scenarios and the signature vectors as JSON to `fixtures/`, with their schemas, docs/errors.md, and the tables of the
 * guide.
 *
 * `--check` writes nothing and exits with 1 when a file is not what the code says.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { errorsGuide } from "./fixtures/errors-guide.ts";
import { fillGuide } from "./fixtures/guide-tables.ts";
import { scenariosJson, scenariosSchema } from "./fixtures/scenarios-json.ts";
import { signatureVectorsJson, signatureVectorsSchema } from "./fixtures/signature-vectors-json.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const guide = "docs/guides/fixtures.md";

const files = new Map([
  ["fixtures/scenarios.json", print(await scenariosJson())],
  ["fixtures/scenarios.schema.json", print(z.toJSONSchema(scenariosSchema))],
  ["fixtures/signature-vectors.json", print(await signatureVectorsJson())],
  ["fixtures/signature-vectors.schema.json", print(z.toJSONSchema(signatureVectorsSchema))],
  ["docs/errors.md", errorsGuide()],
  [guide, fillGuide(await readFile(`${root}${guide}`, "utf8"))],
]);

if (process.argv.includes("--check")) {
  const stale: string[] = [];
  for (const [path, text] of files) {
    if ((await readFile(`${root}${path}`, "utf8").catch(() => "")) !== text) stale.push(path);
  }
  if (stale.length > 0) {
    console.error(`Not what the code says: ${stale.join(", ")}.`);
    console.error("Run `node scripts/generate-fixtures.ts` and commit the result.");
    process.exitCode = 1;
  }
} else {
  await mkdir(`${root}fixtures`, { recursive: true });
  for (const [path, text] of files) await writeFile(`${root}${path}`, text);
}

function print(json: unknown): string {
  return `${JSON.stringify(json, undefined, 1)}\n`;
}
