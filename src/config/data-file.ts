import { readFileSync } from "node:fs";
import { z } from "zod";
import { membersOf, parseJson } from "../util/json.ts";
import { quote } from "../util/text.ts";
import { attempt, InvalidValue, readPart } from "./values.ts";

/**
 * Reads a JSON file.
 *
 * @param read converts the data; throws InvalidValue with the problem
 * @throws {InvalidValue} that names the file
 */
export function readDataFile<T>(path: string, read: (data: unknown) => T): T {
  const { text, named } = readNamedFile(path);
  const data = parseJson(text.replace(/^\uFEFF/, ""));
  if (data === undefined) throw new InvalidValue(`${named}, which is not JSON`);
  return readPart(`${named}; `, () => read(data));
}

/** Why a file could not be read, by system error code. */
const unreadable: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EISDIR: "is a folder",
  EACCES: "this user may not read",
  ERR_STRING_TOO_LONG: "is too large",
};

/**
 * Reads the file at a path that is a variable's or option's value.
 *
 * @returns its text, and its name for messages
 * @throws {InvalidValue} that shows nothing of the file's content
 */
export function readNamedFile(path: string): { text: string; named: string } {
  // A secret set here by mistake does not begin like a path.
  const named = `names the file ${/^\.{0,2}\//.test(path) ? path : quote(path)}`;
  try {
    return { text: readFileSync(path, "utf8"), named };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new InvalidValue(`${named}, which ${unreadable[code] ?? `cannot be read: ${code}`}`);
  }
}

/** Turns a reader of values into a step of a schema. */
export function readBy<Given, T>(read: (given: Given) => T) {
  return (given: Given, context: z.RefinementCtx): T => {
    const found = attempt(() => read(given));
    if ("value" in found) return found.value;
    context.addIssue({ code: "custom", message: found.problem });
    return z.NEVER;
  };
}

/** Formats the path of a field in data: `[2].token.decimals`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
}

/** The maximum number of problems in a message; more usually come from one mistake in many places. */
const mostIssues = 8;

/** Describes all problems of data in one line, each with its field. */
export function describeIssues(data: unknown, { issues }: z.ZodError): string {
  const more = issues.length - mostIssues;
  return [
    ...issues.slice(0, mostIssues).map((issue) => describe(data, issue)),
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("; ");
}

/** Describes an issue as a sentence that begins with the field: `[2].token.decimals: must be …`. */
function describe(data: unknown, issue: z.core.$ZodIssue): string {
  const [, ...path] = Array.isArray(data) ? ["", ...issue.path] : issue.path;
  const unknown = issue.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const field = formatPath([...path, ...(unknown === undefined ? [] : [unknown])]).replace(/^\./, "");
  const isMissing = issue.code !== "custom" && at(data, path) === undefined;
  const said = isMissing ? `is missing: it ${issue.message}` : issue.message;
  const message = unknown === undefined ? said : "there is no such field";
  return field === "" ? message : `${field}: ${message}`;
}

function at(data: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((value, key) => membersOf(value)[String(key)], data);
}
