import { reasons } from "../../protocol/catalogue.ts";
import { adviceOnReason, reasonTexts } from "../../protocol/catalogue-texts.ts";
import { type Finding, finding, mistakes } from "../../protocol/mistakes.ts";
import { showValue } from "../../util/show-value.ts";

/** The members of an answer that are read, as they came. */
export type AnswerMembers = {
  success?: unknown;
  isValid?: unknown;
  network?: unknown;
  errorReason?: unknown;
  invalidReason?: unknown;
  errorMessage?: unknown;
  invalidMessage?: unknown;
  transaction?: unknown;
  /** Of the catalogue; other facilitators do not say it. */
  situation?: unknown;
  /** Of a problem: an answer without a verdict. */
  type?: unknown;
};

/** Reasons that do not follow from the request, or whose advice says already how to find out what in it leads there. */
const beyondRequest = [
  "insufficient_funds",
  "invalid_transaction_state",
  "invalid_payload",
  "invalid_exact_evm_payload_undeployed_smart_wallet",
];

const noVerdict =
  "The request or the service was in no state to be judged: the answer decides nothing of the payment.";

/** Explains an answer that is no success by its reason. */
export function explainRefusedAnswer(answer: AnswerMembers): Finding {
  const { errorReason, errorMessage, situation } = answer;
  const given = errorReason ?? answer.invalidReason;
  const message = errorMessage ?? answer.invalidMessage;
  const told = typeof message === "string" && message !== "" ? message : undefined;
  const at = "success" in answer || errorReason !== undefined ? "errorReason" : "invalidReason";
  const got = told === undefined ? showValue(given) : `${showValue(given)}: ${told}`;
  // Of the reasons that are known, those that refuse nothing.
  const isUndetermined =
    typeof given === "string" && Object.hasOwn(reasonTexts, given) && !Object.hasOwn(reasons, given);
  const mistake = isUndetermined ? "undetermined" : "refused";
  if (typeof given !== "string") {
    return finding(mistake, at, { got, why: "The answer names no reason." });
  }
  const reason = (isUndetermined ? problemOf(answer) : undefined) ?? given;
  const advice = adviceOnReason(reason, situation);
  if (advice === undefined) {
    const why = "The reason is none of this facilitator's: the one that gave it has to say what it means.";
    return finding(mistake, at, { got, why });
  }
  const isInRequest = !isUndetermined && !beyondRequest.includes(reason);
  const fix = isInRequest ? `${advice.fix} ${mistakes.refused.fix}` : advice.fix;
  return finding(mistake, at, { got, fix, reason, why: advice.why || noVerdict });
}

/** The name of the problem that an answer is; undefined for others. */
function problemOf({ type }: AnswerMembers): string | undefined {
  const [, name] =
    (typeof type === "string" && /^urn:x402-facilitator-kit:problem:([a-z-]+)$/.exec(type)) || [];
  return name !== undefined && adviceOnReason(name, undefined) !== undefined ? name : undefined;
}
