import { buildPaymentRequest } from "../protocol/build-request.ts";
import { mistakes } from "../protocol/mistakes.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { isMasked } from "../util/mask-secrets.ts";
import { errorsSection } from "./errors-section.ts";
import { type ExplainContext, explain } from "./explain.ts";
import { problemAdvice } from "./problems.ts";
import { reasonAdvice } from "./reasons.ts";
import { stateAdvice } from "./state-advice.ts";

/** A mistake in a payment, and its fix. */
export type RefusalExplanation = {
  /** One of `mistakes`, or else the reason of the refusal. */
  mistake: string;
  title: string;
  /** Where it is, such as `authorization.validBefore`; empty for the whole payment. */
  at: string;
  got: string | null;
  expected: string | null;
  why: string;
  fix: string;
  /** Where to read on; see {@link errorsSection}. */
  more: string;
};

/** A refused verify or settle: its reason and message, and the payment, where it could be read. */
export type RefusedRequest = {
  reason: string | undefined;
  message: string | undefined;
  request: PaymentRequest | undefined;
  /** The whole body where no payment could be read of it, with its secrets masked. */
  received?: string | undefined;
  /** The time of the request, in unix milliseconds. */
  at: number;
};

/** Explains a refusal by the mistakes found in the payment, otherwise by the meaning of its reason. */
export function explainRefusal(
  { reason, message, request, received, at }: RefusedRequest,
  context: Pick<ExplainContext, "contracts" | "networks">,
): RefusalExplanation[] {
  const found = findMistakes(bodyText({ request, received }, context), context, at);
  // A body that was refused unread may hold mistakes besides.
  const isUnread = request === undefined && reason !== undefined && isProblem(reason);
  if (reason === undefined || (found.length > 0 && !isUnread)) return found;
  const { why, fix } = adviceOnReason(reason, message);
  const more = errorsSection(reason);
  return [
    { mistake: reason, title: message ?? reason, at: "", got: null, expected: null, why, fix, more },
    ...found,
  ];
}

function adviceOnReason(reason: string, message: string | undefined): { why: string; fix: string } {
  if (isProblem(reason)) return { why: "", fix: problemAdvice[reason] };
  if (!isReason(reason)) return { why: "", fix: "" };
  const { meaning, fix } = reasonAdvice[reason];
  const state = reason === "invalid_transaction_state" ? stateAdvice(message) : undefined;
  return state ?? { why: meaning, fix };
}

/** The body of a verify or settle for this payment, in the full form of its version. */
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

function bodyText(
  { request, received }: Pick<RefusedRequest, "request" | "received">,
  { contracts }: Pick<ExplainContext, "contracts">,
): string | undefined {
  return request === undefined ? received : JSON.stringify(requestBodyOf(request, contracts));
}

function findMistakes(
  body: string | undefined,
  context: Pick<ExplainContext, "contracts" | "networks">,
  at: number,
): RefusalExplanation[] {
  if (body === undefined) return [];
  const { kind, findings } = explain(body, { ...context, now: BigInt(Math.floor(at / 1000)) });
  // What is no request at all is told better by the answer.
  if (kind !== "request") return [];
  return findings
    .filter(({ got = "" }) => !isMasked(got))
    .map(({ mistake, at: where, got = null, expected = null, fix }) => {
      const { title, why } = mistakes[mistake];
      return { mistake, title, at: where, got, expected, why, fix, more: errorsSection(mistake) };
    });
}

function isReason(reason: string): reason is keyof typeof reasonAdvice {
  return Object.hasOwn(reasonAdvice, reason);
}

function isProblem(reason: string): reason is keyof typeof problemAdvice {
  return Object.hasOwn(problemAdvice, reason);
}
