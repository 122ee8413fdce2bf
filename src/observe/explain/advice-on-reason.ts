import { problemAdvice } from "./problems.ts";
import { reasonAdvice } from "./reasons.ts";
import { stateAdvice, walletAdvice } from "./state-advice.ts";

/** What a reason of a refusal, or a problem, means, and what to do; undefined for one that is not known. */
export function adviceOnReason(
  reason: string,
  message: string | undefined,
): { why: string; fix: string } | undefined {
  if (isProblem(reason)) return { why: "", fix: problemAdvice[reason] };
  if (!isReason(reason)) return undefined;
  const { meaning, fix } = reasonAdvice[reason];
  const state = reason === "invalid_transaction_state" ? stateAdvice(message) : walletAdvice(message);
  return state ?? { why: meaning, fix };
}

/** Whether it is the name of a problem: of an answer without a verdict. */
export function isProblem(reason: string): reason is keyof typeof problemAdvice {
  return Object.hasOwn(problemAdvice, reason);
}

function isReason(reason: string): reason is keyof typeof reasonAdvice {
  return Object.hasOwn(reasonAdvice, reason);
}
