import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { describeCommand } from "../src/cli/kit/command-line.ts";
import { commands } from "../src/cli/main.ts";
import { payloadSchemas } from "../src/methods/payment-request-schema.ts";
import { describeService } from "../src/protocol/openapi.ts";
import { membersOf } from "../src/util/json.ts";

/*
 * The public surface as files, so that a change of structure shows what else it changed. Update them with `-u` if a
 * difference is intended, and list it in the changelog.
 */

const root = join(import.meta.dirname, "..");

test("the help of every command", async () => {
  const texts = await Promise.all(
    commands.map(async ([name, summary, load]) => describeCommand(name, summary, await load())),
  );
  await expect(`${texts.join("\n\n")}\n`).toMatchFileSnapshot("surface/help.txt");
});

test("the OpenAPI document", async () => {
  const { paths, components, ...others } = membersOf(describeService(payloadSchemas));
  // One line for each path and schema.
  const lines = [others, membersOf(paths), ...Object.values(membersOf(components))].flatMap((part) =>
    Object.entries(membersOf(part)).map(([name, value]) => `${name} ${JSON.stringify(value)}`),
  );
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("surface/openapi.txt");
});

test("the exports of the package", async () => {
  const lines = Object.entries(manifest.exports).map(([name, target]) => {
    if (typeof target === "string") return `${name}: a file`;
    const source = join(root, target.types.replace("dist", "src").replace(".d.ts", ".ts"));
    return `${name}: ${exportsOf(readFileSync(source, "utf8")).sort().join(" ")}`;
  });
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("surface/exports.txt");
});

/** The names that a module exports, by its source; everything of another module as `* from …`. */
function exportsOf(source: string): string[] {
  const lists = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = ""]) =>
    names.split(",").map((name) => name.trim().replace(/^type |.* as /g, "")),
  );
  const own = [...source.matchAll(/^export (?:default )?(?:async )?(?:const|type|function|class) (\w+)/gm)];
  const whole = [...source.matchAll(/^export (\* from "[^"]+")/gm)];
  return [...lists, ...[...own, ...whole].map(([, name = ""]) => name)].filter((name) => name !== "");
}
