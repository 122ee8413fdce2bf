import { readFileSync } from "node:fs";

const guide = readFileSync(new URL("../../../docs/judge-cases.md", import.meta.url), "utf8");

/** The rows of the table in docs/judge-cases.md that has this heading above one of its two columns. */
export function judgeTable(heading: string): [string, string][] {
  const tables = guide.split("\n\n").filter((part) => part.startsWith("| "));
  const table = tables.find((part) => part.split("\n", 1)[0]?.includes(`| ${heading} |`));
  if (table === undefined) throw new Error(`docs/judge-cases.md has no table “${heading}”`);
  return table
    .trim()
    .split("\n")
    .slice(2)
    .map((row) => {
      const [left = "", right = ""] = row.slice(2, -2).split(" | ");
      return [left, right];
    });
}
