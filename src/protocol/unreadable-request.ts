import { problemBody, problemDetails, problemKinds, problemMediaType } from "./problems.ts";

/**
 * The answer, byte for byte, to what is not HTTP, comes too slowly, or has headers that are too large: there is no request
 * to answer, so no framework writes it. The connection ends with it.
 *
 * @param code Node's, of the error of the connection
 */
export function answerUnreadableRequest(code: string | undefined, requestId: string): string {
  const { kind, detail } = problemOf(code);
  const body = JSON.stringify(
    problemBody(
      { kind: problemKinds[kind], detail },
      { operation: undefined, requestId, envelope: undefined },
    ),
  );
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
      return { kind: "timeout", detail: problemDetails.tooSlow };
    case "HPE_HEADER_OVERFLOW":
      return { kind: "headersTooLarge", detail: problemDetails.headersTooLarge };
    default:
      return { kind: "malformed", detail: problemDetails.notHttp };
  }
}
