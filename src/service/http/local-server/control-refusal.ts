import { z } from "zod";
import { problemDetails } from "../../../protocol/problems.ts";

/** What the sender of a request to a control route did wrong; undefined for any other error. */
export function controlRefusal(error: unknown): { status: number; message: string } | undefined {
  if (error instanceof z.ZodError) return { status: 400, message: describeIssues(error) };
  const status: unknown = Reflect.get(Object(error), "statusCode");
  switch (status) {
    case 400:
      return { status, message: isEmpty(error) ? empty : notRead };
    case 413:
      return { status, message: "The body is too large" };
    case 415:
      return { status, message: problemDetails.mediaType };
    default:
      return undefined;
  }
}

const notRead = "The body is not JSON, or has a member __proto__ or constructor.prototype, which is refused";
const empty = "The body is empty: send a JSON object, such as {}";

/** As Fastify says it. */
function isEmpty(error: unknown): boolean {
  return Reflect.get(Object(error), "code") === "FST_ERR_CTP_EMPTY_JSON_BODY";
}

/** Each wrong member and what is wrong with it, in a sentence. */
function describeIssues(error: z.ZodError): string {
  return error.issues
    .map((issue) => `${issue.path.length === 0 ? "The body" : issue.path.join(".")}: ${sentenceOf(issue)}`)
    .join("; ");
}

const kinds: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  string: "a string",
};

/** What an issue says, where the schema has no sentence of its own. */
function sentenceOf(issue: z.core.$ZodIssue): string {
  // Sentences of our own begin with a small letter.
  if (/^[a-z]/.test(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
    case "unrecognized_keys":
      return `there is no ${issue.keys.map((key) => JSON.stringify(key)).join(" and no ")} here`;
    case "invalid_union":
      return issue.errors
        .flatMap(([first]) => (first === undefined ? [] : [sentenceOf(first)]))
        .join(", or ");
    case "too_small":
      return `must ${has(issue.origin)} at least ${issue.minimum}`;
    case "too_big":
      return `must ${has(issue.origin)} at most ${issue.maximum}`;
    case "invalid_format":
      return issue.format === "datetime" ? "must be a time such as 2026-01-31T12:00:00Z" : issue.message;
    default:
      return issue.message;
  }
}

function has(origin: string): string {
  if (origin === "string") return "have a length of";
  return origin === "array" ? "have a number of entries of" : "be";
}
