import type { problemKinds } from "../../protocol/problems.ts";

/** The end of a problem's `type`. */
export type ProblemName = (typeof problemKinds)[keyof typeof problemKinds]["name"];

/** What to do if a request got no verdict, by the name of the problem. */
export const problemAdvice: Readonly<Record<ProblemName, string>> = {
  "malformed-request": "Send the body as one JSON object; `x402-kit explain BODY` says what it is instead.",
  unauthorized: "Send the API key in the header Authorization; `x402-kit up` prints it.",
  forbidden:
    "Name the organization's wallet on this network with `x402-kit org set-recipient`, or use a key with the scope.",
  "not-found": "The facilitator's URL ends in /v1: payments go to POST /v1/verify and POST /v1/settle.",
  "method-not-allowed": "Use the method that the message names.",
  "request-timeout": "Send the whole request without pauses. Nothing was done; send the same payment again.",
  "payment-identifier-reused":
    "Send the payment that came first under this identifier, or have the payer's client use a new one for a new purchase.",
  "body-too-large": "Send the payment alone; it has about 1 KiB.",
  "uri-too-long": "The facilitator's URL ends in /v1: nothing of a payment belongs in the path or the query.",
  "unsupported-media-type":
    "Send content-type: application/json, and the body as plain JSON, not compressed.",
  "idempotency-key-reused": "Use a new Idempotency-Key for every payment, and the old one for repeats.",
  "too-many-requests": "Wait as long as Retry-After says, then send the same payment again.",
  "gas-budget-used-up":
    "Wait as long as Retry-After says, then send the same payment again; `x402-kit org set-limits` changes the budget.",
  "headers-too-large": "Send the payment in the body, and no header but Authorization and content-type.",
  overloaded: "Wait as long as Retry-After says, then send the same payment again.",
  "shutting-down": "Send the same payment again: another instance, or the next one, takes it.",
  undetermined: "Send the same payment again, never a new one.",
};
