/**
 * Writes the JavaScript in templates/ next to its TypeScript: the same text without types, formatted. With `--check` it
 * writes nothing, and fails if a file is stale.
 */
import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "rolldown/utils";
import { writeGenerated } from "./write-generated.ts";

const root = join(import.meta.dirname, "..");
const biome = join(root, "node_modules/@biomejs/biome/bin/biome");

const sources = globSync("templates/{*,*/app,*/app/*}/*.{ts,tsx}", {
  cwd: root,
  // Vitest reads its configuration in either language.
  exclude: ["**/vitest.config.ts"],
});
writeGenerated(sources.sort().map((path) => [path.replace(/\.tsx?$/, ".js"), withoutTypes(path)]));

function withoutTypes(path: string): string {
  const source = readFileSync(join(root, path), "utf8");
  const { program, errors } = parseSync(path, source);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  let text = "";
  let end = 0;
  for (const [from, to] of typesIn(program, source)) {
    text += source.slice(end, from);
    end = to;
  }
  const script = `${text}${source.slice(end)}`.replaceAll(/\.tsx?\b/g, ".js");
  const options = ["format", "--stdin-file-path=any.jsx"];
  return execFileSync(process.execPath, [biome, ...options], { cwd: root, input: script, encoding: "utf8" });
}

/** The ranges that only types occupy, in order. If a statement is all types, its line break is included. */
function* typesIn(node: unknown, source: string): Generator<readonly [from: number, to: number]> {
  if (Array.isArray(node)) for (const one of node) yield* typesIn(one, source);
  if (!isNode(node)) return;
  if (node.type === "TSAsExpression" && isNode(node.expression)) {
    yield* typesIn(node.expression, source);
    yield [node.expression.end, node.end];
  } else if (node.type.startsWith("TS") || node.importKind === "type") {
    yield [node.start, source[node.end] === "\n" ? node.end + 1 : node.end];
  } else {
    if (node.type === "MethodDefinition" && node.override === true) {
      yield [node.start, node.start + "override ".length];
    }
    yield* Object.values(node)
      .flatMap((member) => [...typesIn(member, source)])
      .sort(([a], [b]) => a - b);
  }
}

type SyntaxNode = {
  type: string;
  start: number;
  end: number;
  importKind?: unknown;
  override?: unknown;
  expression?: unknown;
};

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
