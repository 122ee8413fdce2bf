import { buildPaymentRequest } from "../protocol/build-request.ts";
import { mistakes } from "../protocol/mistakes.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { type ExplainContext, explain } from "./explain.ts";
import { reasonAdvice } from "./reasons.ts";

/** Something that is wrong with a payment, and how it is mended; see docs/errors.md. */
export type RefusalExplanation = {
  /** A mistake of docs/errors.md, or else the reason of the refusal. */
  mistake: string;
  title: string;
  /** Where: `authorization.validBefore`; empty for the whole. */
  at: string;
  got: string | null;
  expected: string | null;
  why: string;
  fix: string;
};

/** A refused verify or settle: its reason and message, and the payment, where it could be read. */
export type RefusedRequest = {
  reason: string | undefined;
  message: string | undefined;
  request: PaymentRequest | undefined;
  /** When it came, unix milliseconds. */
  at: number;
};

/** Why a payment was refused: the mistakes that it shows, or else what its reason means. */
export function explainRefusal(
  { reason, message, request, at }: RefusedRequest,
  context: Pick<ExplainContext, "contracts" | "networks">,
): RefusalExplanation[] {
  const found = request === undefined ? [] : findMistakes(request, context, at);
  if (found.length > 0 || reason === undefined) return found;
  const advice = isReason(reason) ? reasonAdvice[reason] : undefined;
  const { meaning: why = "", fix = adviceOnProblems[reason] ?? "" } = advice ?? {};
  return [{ mistake: reason, title: message ?? reason, at: "", got: null, expected: null, why, fix }];
}

/** What to do where a request got no verdict: by the name of the problem. */
const adviceOnProblems: Readonly<Record<string, string>> = {
  unauthorized: "Send the API key in the header Authorization; `x402-kit up` prints it.",
  forbidden:
    "Name the organization's wallet on this network with `x402-kit org set-recipient`, or use a key with the scope.",
  "malformed-request": "Send the body as one JSON object; `x402-kit explain BODY` says what it is instead.",
  "unsupported-media-type": "Send content-type: application/json.",
  "not-found": "The facilitator's URL ends in /v1: payments go to POST /v1/verify and POST /v1/settle.",
  "method-not-allowed": "Use the method that the message names.",
  "idempotency-key-reused": "Use a new Idempotency-Key for every payment, and the old one for repeats.",
  "payment-identifier-reused":
    "Send the payment that came first under this identifier, or have the payer's client use a new one for a new purchase.",
  undetermined: "Send the same payment again, never a new one.",
};

/** The body of a verify or settle that a payment came in, in the full form of its version. */
export function requestBodyOf(
  request: PaymentRequest,
  contracts: ExplainContext["contracts"],
): Record<string, unknown> {
  const { knownNetwork, requirements, authorization, signature, x402Version } = request;
  return buildPaymentRequest({
    x402Version,
    network: knownNetwork,
    asset: { ...knownNetwork.usdc, address: requirements.asset },
    payTo: requirements.payTo ?? contracts[knownNetwork.tier],
    amount: requirements.amount,
    resource: "",
    authorization,
    signature,
  });
}

function findMistakes(
  request: PaymentRequest,
  context: Pick<ExplainContext, "contracts" | "networks">,
  at: number,
): RefusalExplanation[] {
  const body = requestBodyOf(request, context.contracts);
  const { findings } = explain(JSON.stringify(body), { ...context, now: BigInt(Math.floor(at / 1000)) });
  return findings.map(({ mistake, at: where, got = null, expected = null, fix }) => {
    const { title, why } = mistakes[mistake];
    return { mistake, title, at: where, got, expected, why, fix };
  });
}

function isReason(reason: string): reason is keyof typeof reasonAdvice {
  return Object.hasOwn(reasonAdvice, reason);
}
