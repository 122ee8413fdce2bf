import type { ProblemDetails, Written } from "./answers.ts";
import { nextStepOfProblem } from "./next-step.ts";
import { paymentIdentifierExtension } from "./payment-identifier.ts";
import { limitMessage } from "./reasons.ts";
import type { Envelope } from "./requests.ts";
import { longestParameter } from "./routes.ts";

export const problemMediaType = "application/problem+json";

/** Which x402 members a problem carries beside those of RFC 9457. */
export type Operation = "verify" | "settle";

/** A kind of "no verdict": its HTTP status, the end of its `type`, and its title. */
export type ProblemKind = { status: number; name: string; title: string };

/** The ways in which there is no verdict. */
export const problemKinds = {
  malformed: { status: 400, name: "malformed-request", title: "The request could not be read" },
  unauthorized: { status: 401, name: "unauthorized", title: "API key missing or not accepted" },
  forbidden: { status: 403, name: "forbidden", title: "The API key does not allow this" },
  notFound: { status: 404, name: "not-found", title: "Nothing here" },
  methodNotAllowed: { status: 405, name: "method-not-allowed", title: "Another method is needed" },
  timeout: { status: 408, name: "request-timeout", title: "The request came too slowly" },
  identifierReused: {
    status: 409,
    name: "payment-identifier-reused",
    title: "Payment identifier reused with another payment",
  },
  tooLarge: { status: 413, name: "body-too-large", title: "The body is too large" },
  uriTooLong: { status: 414, name: "uri-too-long", title: "The path is too long" },
  mediaType: { status: 415, name: "unsupported-media-type", title: "The body must be JSON" },
  idempotency: {
    status: 422,
    name: "idempotency-key-reused",
    title: "Idempotency-Key reused with another body",
  },
  tooManyRequests: { status: 429, name: "too-many-requests", title: "Too many requests" },
  gasBudget: { status: 429, name: "gas-budget-used-up", title: "The organization's gas budget is used up" },
  headersTooLarge: { status: 431, name: "headers-too-large", title: "The headers are too large" },
  overloaded: { status: 503, name: "overloaded", title: "The service is overloaded" },
  shuttingDown: { status: 503, name: "shutting-down", title: "The service is shutting down" },
  undetermined: { status: 503, name: "undetermined", title: "No verdict could be reached" },
} as const satisfies Record<string, ProblemKind>;

/** The details of the problems, for callers. */
export const problemDetails = {
  unauthorized: "Send a valid API key in the Authorization header, as it is or after the word Bearer",
  empty: "The body is empty; send the payment as JSON",
  undecodable: "The path cannot be decoded: a % in it begins no valid escape; write a plain % as %25",
  uriTooLong: `A part of the path is longer than ${longestParameter} characters`,
  malformed: "The body is not JSON",
  notJson: (line: number, column: number) => `The body is not JSON from line ${line}, column ${column} on`,
  poisoned: "The body has a member __proto__ or constructor.prototype, which is refused",
  tooLarge: "The body may have at most 32 KiB",
  mediaType: "Send the body with content-type: application/json",
  contentEncoding: (encoding: string) =>
    `Send the body as plain JSON, without content-encoding: bodies that are compressed (${encoding}) are not read`,
  idempotencyKey: `Idempotency-Key must be 1 to 255 visible ASCII characters without spaces, or ${paymentIdentifierExtension}; resource="…" with 1 to 2048 of them, in double quotes`,
  idempotency: "This Idempotency-Key was used with another body; use a new key for a new payment",
  identifierReused:
    "This payment identifier was another payment's before; nothing was done. Send that payment again, or use a new identifier for a new purchase",
  overloaded: "The service is overloaded; nothing was done, try again later",
  discoveryOff:
    "Discovery is off at this facilitator; its operator turns it on (`up --discovery`, or DISCOVERY=true for `serve`)",
  noSettlement:
    "This organization has no settlement with this id: no settle of that payment has passed all checks",
  noSuchNetwork: (served: readonly string[]) =>
    `This network is not served here; served: ${served.join(", ")}`,
  lacksScope: (scope: string) => `This API key lacks the scope "${scope}"; use a key that has it`,
  lacksRecipient: (network: string) =>
    `The organization has no recipient wallet on ${network}; set one at the facilitator`,
  methodNotAllowed: (method: string, path: string, allowed: readonly string[]) =>
    `${method} is not allowed at ${path}; allowed: ${allowed.join(", ")}`,
  shuttingDown: "The service is shutting down; nothing was done, try again",
} as const;

/** The largest body that is read, in bytes. Payments are about 1 KiB. */
export const bodyLimit = 32 * 1024;

/**
 * The form of an `Idempotency-Key`: it is stored, and all readers must read the same key. None begins like what a shop
 * writes to name what it sells: if that were read as a key, nothing would be repeated, and nobody would notice.
 */
export const idempotencyKeyFormat = /^(?!payment-identifier;)[\x21-\x7e]{1,255}$/;

/** The body of a problem, with the x402 members that public clients look for. */
export function problemBody(
  {
    kind,
    detail,
    retryAfterSeconds,
  }: { kind: ProblemKind; detail: string; retryAfterSeconds?: number | string | undefined },
  context: { operation: Operation | undefined; requestId: string; envelope: Envelope | undefined },
): Written<ProblemDetails> {
  const { operation, requestId, envelope } = context;
  const problem: ProblemDetails = {
    type: `urn:x402-facilitator-kit:problem:${kind.name}`,
    title: kind.title,
    status: kind.status,
    detail,
    instance: `urn:uuid:${requestId}`,
  };
  if (operation === undefined) return problem;
  const { network = "", payer } = envelope ?? {};
  const common = {
    network,
    ...(payer === undefined ? {} : { payer }),
    ...nextStepOfProblem(operation, kind.status, retryAfterSeconds),
  };
  const message = limitMessage(detail);
  const verdict =
    operation === "verify"
      ? ({ isValid: false, invalidReason: "unexpected_verify_error", invalidMessage: message } as const)
      : ({ success: false, errorReason: "unexpected_settle_error", errorMessage: message } as const);
  return { ...problem, ...common, ...verdict, ...(operation === "settle" && { transaction: "" }) };
}
