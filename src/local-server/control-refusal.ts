import { z } from "zod";
import { problemDetails } from "../protocol/problems.ts";

/** What the sender of a request to a control route did wrong; undefined for any other error. */
export function controlRefusal(error: unknown): { status: number; message: string } | undefined {
  if (error instanceof z.ZodError) return { status: 400, message: describeIssues(error) };
  const status: unknown = Reflect.get(Object(error), "statusCode");
  switch (status) {
    case 400:
      return { status, message: problemDetails.malformed };
    case 413:
      return { status, message: "The body is too large" };
    case 415:
      return { status, message: problemDetails.mediaType };
    default:
      return undefined;
  }
}

/** Each wrong member and what is wrong with it, in a sentence. */
function describeIssues(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => `${path.length === 0 ? "The body" : path.join(".")}: ${message}`)
    .join("; ");
}
