/**
 * Writes the scenarios and the signature vectors as JSON to `fixtures/`, with their schemas, docs/errors.md, and the
 * lists in the guides.
 *
 * `--check` only compares.
 */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { errorsGuide } from "../src/observe/studio/errors-page.ts";
import { agentLists, fillGuide, fixturesLists } from "./fixtures/guide-lists.ts";
import { scenariosJson, scenariosSchema } from "./fixtures/scenarios-json.ts";
import { signatureVectorsJson, signatureVectorsSchema } from "./fixtures/signature-vectors-json.ts";
import { writeGenerated } from "./write-generated.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const guides = [
  ["docs/guides/fixtures.md", fixturesLists()],
  ["docs/guides/agents.md", agentLists()],
] as const;

writeGenerated([
  ["fixtures/scenarios.json", print(await scenariosJson())],
  ["fixtures/scenarios.schema.json", print(z.toJSONSchema(scenariosSchema))],
  ["fixtures/signature-vectors.json", print(await signatureVectorsJson())],
  ["fixtures/signature-vectors.schema.json", print(z.toJSONSchema(signatureVectorsSchema))],
  ["docs/errors.md", errorsGuide()],
  ...(await Promise.all(
    guides.map(
      async ([guide, lists]) => [guide, fillGuide(await readFile(`${root}${guide}`, "utf8"), lists)] as const,
    ),
  )),
]);

function print(json: unknown): string {
  return `${JSON.stringify(json, undefined, 1)}\n`;
}
