import { nextStepOfProblem } from "./catalogue.ts";
import { problemBody, problemKinds, problemMediaType } from "./problems.ts";

/*
 * These details are not in the table of `problems.ts`, since that is part of the fixtures, which browsers load: there no
 * request is unreadable.
 */

export const noHost = "The request has no Host header";

/**
 * The answer, byte for byte, to what is not HTTP, comes too slowly, or has headers that are too large: there is no request
 * to answer, so no framework writes it. The connection ends with it.
 *
 * @param code Node's, of the error of the connection
 */
export function answerUnreadableRequest(code: string | undefined, requestId: string): string {
  const { kind, detail } = problemOf(code);
  const problem = problemBody(
    { kind: problemKinds[kind], detail },
    { operation: undefined, requestId, envelope: undefined },
  );
  // It may have been a settle.
  const body = JSON.stringify({ ...problem, ...nextStepOfProblem("settle", problemKinds[kind].status) });
  return [
    `HTTP/1.1 ${statusLines[kind]}`,
    `content-type: ${problemMediaType}; charset=utf-8`,
    `content-length: ${new TextEncoder().encode(body).length}`,
    "x-content-type-options: nosniff",
    `x-request-id: ${requestId}`,
    "connection: close",
    "",
    body,
  ].join("\r\n");
}

const statusLines = {
  timeout: "408 Request Timeout",
  headersTooLarge: "431 Request Header Fields Too Large",
  malformed: "400 Bad Request",
} as const;

function problemOf(code: string | undefined): { kind: keyof typeof statusLines; detail: string } {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { kind: "timeout", detail: "The request did not arrive in time" };
    case "HPE_HEADER_OVERFLOW":
      return {
        kind: "headersTooLarge",
        detail: "The request line and the headers may have at most 16 KiB",
      };
    default:
      return { kind: "malformed", detail: "What arrived is not a well-formed HTTP/1.1 request" };
  }
}
