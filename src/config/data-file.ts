import { readFileSync } from "node:fs";
import type { z } from "zod";
import { InvalidValue, quote } from "./values.ts";

/**
 * Reads a file of JSON.
 *
 * @param read makes something of it; throws InvalidValue with what is wrong
 * @throws {InvalidValue} that names the file
 */
export function readDataFile<T>(path: string, read: (data: unknown) => T): T {
  // A secret, set here by mistake, does not begin as a path does.
  const shown = /^\.{0,2}\//.test(path) ? path : quote(path);
  let json: string;
  try {
    json = readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new InvalidValue(`names the file ${shown}, which cannot be read: ${code}`);
  }
  let data: unknown;
  try {
    data = JSON.parse(json.replace(/^\uFEFF/, ""));
  } catch {
    throw new InvalidValue(`names the file ${shown}, which is not JSON`);
  }
  try {
    return read(data);
  } catch (error) {
    throw error instanceof InvalidValue
      ? new InvalidValue(`names the file ${shown}; ${error.message}`)
      : error;
  }
}

/** More than that is one mistake in many places. */
const mostIssues = 8;

/** Everything that is wrong with data, in one line, each with the field that it is in. */
export function describeIssues(data: unknown, { issues }: z.ZodError): string {
  const more = issues.length - mostIssues;
  return [
    ...issues.slice(0, mostIssues).map((issue) => describe(data, issue)),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("; ");
}

/** An issue as a sentence that begins with the field: `[2].token.decimals: must be …`. */
function describe(data: unknown, issue: z.core.$ZodIssue): string {
  const [, ...path] = Array.isArray(data) ? ["", ...issue.path] : issue.path;
  const unknown = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const field = [...path, ...(unknown === undefined ? [] : [unknown])]
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
  const isMissing = issue.code !== "custom" && at(data, path) === undefined;
  const message =
    unknown !== undefined
      ? "there is no such field"
      : isMissing
        ? `is missing: it ${issue.message}`
        : issue.message;
  return field === "" ? message : `${field}: ${message}`;
}

function at(data: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    data,
  );
}
