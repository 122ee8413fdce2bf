import { buildPaymentRequest } from "../protocol/build-request.ts";
import { mistakes } from "../protocol/mistakes.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { errorsSection } from "./errors-section.ts";
import { type ExplainContext, explain } from "./explain.ts";
import { problemAdvice } from "./problems.ts";
import { reasonAdvice } from "./reasons.ts";

/** Something that is wrong with a payment, and how it is mended. */
export type RefusalExplanation = {
  /** One of `mistakes`, or else the reason of the refusal. */
  mistake: string;
  title: string;
  /** Where: `authorization.validBefore`; empty for the whole. */
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
  const { meaning: why = "", fix = isProblem(reason) ? problemAdvice[reason] : "" } = advice ?? {};
  const more = errorsSection(reason);
  return [{ mistake: reason, title: message ?? reason, at: "", got: null, expected: null, why, fix, more }];
}

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
    return { mistake, title, at: where, got, expected, why, fix, more: errorsSection(mistake) };
  });
}

function isReason(reason: string): reason is keyof typeof reasonAdvice {
  return Object.hasOwn(reasonAdvice, reason);
}

function isProblem(reason: string): reason is keyof typeof problemAdvice {
  return Object.hasOwn(problemAdvice, reason);
}
