import type { ProblemDetails, Written } from "./answers.ts";
import { limitMessage, nextStepOfProblem } from "./catalogue.ts";
import { paymentIdentifierExtension } from "./payment-identifier.ts";
import type { Envelope } from "./requests.ts";
import { longestParameter } from "./routes.ts";

export const problemMediaType = "application/problem+json";

/** Decides which x402 members a problem has besides those of RFC 9457. */
export type Operation = "verify" | "settle";

/** A kind of problem (no decision was made): its HTTP status, the end of its `type`, and its title. */
export type ProblemKind = { status: number; name: string; title: string };

/** All kinds of problems. */
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

/** The end of a problem's `type`. */
export type ProblemName = (typeof problemKinds)[keyof typeof problemKinds]["name"];

/** The cause of a problem, if its title does not name it or its status has several, and what to do. */
type ProblemText = { means?: string; fix: string };

/** The texts about problems, for `explain`, docs/errors.md and the OpenAPI document. */
export const problemTexts: Readonly<Record<ProblemName, ProblemText>> = {
  "malformed-request": {
    means: "The body is not JSON, or a parameter of the query, a key or an identifier cannot be read",
    fix: "Correct what the message names; if that is the body, send one JSON object: `x402-kit explain BODY` says what it is instead.",
  },
  unauthorized: {
    means: "API key missing or not accepted",
    fix: "Send the API key in the header Authorization; `x402-kit up --env` prints that of a local facilitator.",
  },
  forbidden: {
    means: "The key lacks a scope, or its organization a recipient on the network",
    fix: "Name the organization's wallet on this network with `x402-kit org set-recipient`, or use a key with the scope.",
  },
  "not-found": {
    means: "No such settlement of this organization, no such network, or no catalogue here",
    fix: "The facilitator's URL ends in /v1: payments go to POST /v1/verify and POST /v1/settle.",
  },
  "method-not-allowed": {
    fix: "Use the method that the message names; OPTIONS, by which browsers ask for web pages, is answered with --cors-origins.",
  },
  "request-timeout": {
    fix: "Send the whole request without pauses. Nothing was done; send the same payment again.",
  },
  "payment-identifier-reused": {
    means: "The payment's identifier (extension payment-identifier) was another payment's",
    fix: "Send the payment that came first under this identifier, or have the payer's client use a new one for a new purchase.",
  },
  "body-too-large": { means: "More than 72 KiB", fix: "Send the payment alone; it has about 1 KiB." },
  "uri-too-long": {
    fix: "The facilitator's URL ends in /v1: nothing of a payment belongs in the path or the query.",
  },
  "unsupported-media-type": {
    means: "Not application/json",
    fix: "Send content-type: application/json, and the body as plain JSON, not compressed.",
  },
  "idempotency-key-reused": {
    means: "Idempotency-Key reused with another body",
    fix: "Use a new Idempotency-Key for every payment, and the old one for repeats.",
  },
  "too-many-requests": {
    means: "Too many requests from this API key, or from this address without a good one",
    fix: "Wait as long as Retry-After says, then send the same payment again.",
  },
  "gas-budget-used-up": {
    means: "the organization's gas budget of the day is used up; see Retry-After",
    fix: "Wait as long as Retry-After says, then send the same payment again; `x402-kit org set-limits` changes the budget.",
  },
  "headers-too-large": {
    fix: "Send the payment in the body, and no header but Authorization and content-type.",
  },
  overloaded: { fix: "Wait as long as Retry-After says, then send the same payment again." },
  "shutting-down": { fix: "Send the same payment again: another instance, or the next one, takes it." },
  undetermined: {
    means: "No verdict could be reached, or the settlement is under way; see Retry-After",
    fix: "Send the same payment again, never a new one.",
  },
};

/** True if this is the name of a problem, that is, of a response without a decision. */
export function isProblem(reason: string): reason is ProblemName {
  return Object.hasOwn(problemTexts, reason);
}

/** How an unset variable looks in a header. */
const unsetKeys = ["undefined", "null", "[object Object]", ""];

/**
 * The problem with the Authorization header, as far as its sender may know. For a key that is not accepted, it does
 * not reveal whether a similar one ever existed.
 */
export function unauthorizedDetail(header: string | undefined): string {
  if (header === undefined) {
    return "There is no Authorization header; send the API key in it, as it is or after the word Bearer";
  }
  const key = header.replace(/^Bearer\b/i, "").trim();
  if (unsetKeys.includes(key)) {
    const got = key === "" ? "no key" : `"${key}" in the place of a key`;
    return `The Authorization header has ${got}: the variable that the caller takes it from is not set`;
  }
  const isTwice = /^Bearer\s/i.test(key);
  if (isTwice || /["'`]/.test(key)) {
    const what = isTwice ? "Bearer twice" : "quotes around the key";
    return `The Authorization header has ${what}: leave out all but Bearer KEY`;
  }
  return "The API key in the Authorization header is not known here, was revoked or has expired";
}

/** The details of problems, for callers. */
export const problemDetails = {
  empty: "The body is empty; send the payment as JSON",
  undecodable: "The path cannot be decoded: a % in it begins no valid escape; write a plain % as %25",
  uriTooLong: `A part of the path is longer than ${longestParameter} characters`,
  malformed: "The body is not JSON",
  notJson: (line: number, column: number) => `The body is not JSON from line ${line}, column ${column} on`,
  poisoned: "The body has a member __proto__ or constructor.prototype, which is refused",
  tooLarge: "The body may have at most 72 KiB",
  mediaType: "Send the body with content-type: application/json",
  contentEncoding: (encoding: string) =>
    `Send the body as plain JSON, without content-encoding: bodies that are compressed (${encoding}) are not read`,
  idempotencyKey: "Idempotency-Key must be 1 to 255 visible ASCII characters without spaces",
  shopsResource: `Idempotency-Key must be ${paymentIdentifierExtension}; resource="…" with 1 to 2048 visible ASCII characters without spaces in double quotes`,
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

/** The largest body that is read, in bytes. Payments have about 1 KiB, claims of 100 channels 64 KiB. */
export const bodyLimit = 72 * 1024;

/**
 * The format of an `Idempotency-Key`: it is stored, and all readers must read the same key. A key must not start like a shop's
 * resource header: if a malformed one were read as a key, nothing would be repeated, and nobody would notice.
 */
export const idempotencyKeyFormat = /^(?!payment-identifier;)[\x21-\x7e]{1,255}$/;

/**
 * The problem with an `Idempotency-Key` that is neither a key nor a shop's resource, depending on which one it starts like.
 */
export function idempotencyKeyDetail(key: unknown): string {
  const text = typeof key === "string" ? key : "";
  if (text.startsWith(`${paymentIdentifierExtension};`)) return problemDetails.shopsResource;
  return `${problemDetails.idempotencyKey}${text.length > 255 ? `; this one has ${text.length}` : ""}`;
}

/** Builds the body of a problem, with the x402 members that public clients look for. */
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

/*
 * For requests that cannot be parsed. Not part of `problemDetails`, which the fixtures use in browsers, where no
 * request is unreadable.
 */

export const noHost = "The request has no Host header";

/**
 * The response, byte for byte, to a request that is not HTTP, comes too slowly, or has too large headers. There is no
 * request object, so no framework writes it. The connection ends with it.
 *
 * @param code Node's code for the connection error
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
