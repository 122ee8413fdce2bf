import type { z } from "zod";

/** Where data is not what a schema says, the first place of all: `answers[3].method`. For people, whom the schema's words tell less. */
export function firstPlace({ issues: [issue] }: z.ZodError): string {
  if (issue === undefined) return "its start";
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown]
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
  return path === "" ? "its start" : path;
}
