import { halfOfOffer } from "../../methods/explained.ts";
import { isDecidedBy, isSituation, reasons } from "../../protocol/catalogue.ts";
import { adviceOnAnswer, adviceOnReason, reasonTexts } from "../../protocol/catalogue-texts.ts";
import type { Address } from "../../protocol/hex.ts";
import { type Finding, finding, mistakes } from "../../protocol/mistakes.ts";
import { formatSpan } from "../../protocol/moments.ts";
import { type Asset, builtInNetworks } from "../../protocol/networks.ts";
import { isProblem } from "../../protocol/problems.ts";
import { specReason } from "../../protocol/reference-reasons.ts";
import { expiryMarginSeconds, usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import type { X402Version } from "../../protocol/requests.ts";
import {
  countedAsEther,
  describeOne,
  formatBoth,
  parseAmount,
  type TokenUnits,
} from "../../protocol/token-units.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import type { Deployment } from "./deployment.ts";

/** Finds problems that make every payment for an offer fail although all its members can be read. */
export function explainOffer(
  at: string,
  offer: Record<string, unknown>,
  { token, contract }: { token: Asset; contract: Address },
): Finding[] {
  return [
    ...explainTimeout(`${at}.maxTimeoutSeconds`, offer.maxTimeoutSeconds),
    ...halfOfOffer(offer).explainOffer(at, offer, { token, contract }),
  ];
}

/** Reports an amount that was probably counted with 18 decimals, for a token that has fewer. */
export function explainSize(at: string, text: unknown, units: TokenUnits): Finding[] {
  const amount = typeof text === "string" ? parseUint256(text) : null;
  const meant = amount === null ? undefined : countedAsEther(amount, units);
  if (amount === null || meant === undefined) return [];
  return [
    finding("amount-off-by-decimals", at, {
      got: formatBoth(amount, units),
      expected: `${formatBoth(meant, units)}, if it was counted with 18 decimals`,
      why: `It was probably counted with 18 decimals, as ether is; ${units.symbol} has ${units.decimals}.`,
      fix: `Count in the token's smallest unit: ${describeOne(units)}, and 0.01 ${units.symbol} is ${parseAmount("0.01", units.decimals) ?? "less than one"}.`,
    }),
  ];
}

/** Checks `maxTimeoutSeconds`: clients sign payments that stay valid that long. */
export function explainTimeout(at: string, seconds: unknown): Finding[] {
  if (typeof seconds !== "number" || !Number.isSafeInteger(seconds)) return [];
  if (seconds > Number(expiryMarginSeconds) && seconds <= Number(usualMaxValiditySeconds)) return [];
  const got = seconds < 0 ? `${seconds}` : `${seconds} (${formatSpan(BigInt(seconds))})`;
  const expected = `more than ${expiryMarginSeconds}, and at most ${usualMaxValiditySeconds} (a day)`;
  return [finding("timeout-out-of-range", at, { got, expected })];
}

/** The requirements that a version 1 payment header, which carries none, is probably meant for. */
export function requirementsFor(
  { network, payload }: Readonly<Record<string, unknown>>,
  { networks = builtInNetworks, contracts, payTo = "contract" }: Deployment,
): unknown {
  const { value, to } = membersOf(membersOf(payload).authorization);
  const named =
    typeof network === "string" ? (networks.find(network, 1) ?? networks.find(network, 2)) : undefined;
  const contract = named && contracts[named.tier];
  return {
    scheme: "exact",
    network,
    maxAmountRequired: value,
    asset: named?.usdc.address,
    payTo: payTo === "contract" ? contract : to,
  };
}

/** An example payment for an offer in a challenge. */
export function paymentFor(offer: Record<string, unknown>, version: X402Version): unknown {
  const payload = halfOfOffer(offer).example(offer);
  return version === 1
    ? { x402Version: 1, scheme: "exact", network: offer.network, payload }
    : { x402Version: 2, accepted: offer, payload };
}

/** The members of an answer that are read here, unchecked. */
export type AnswerMembers = {
  success?: unknown;
  isValid?: unknown;
  network?: unknown;
  errorReason?: unknown;
  invalidReason?: unknown;
  errorMessage?: unknown;
  invalidMessage?: unknown;
  transaction?: unknown;
  amount?: unknown;
  /** A catalogue situation; other facilitators do not send it. */
  situation?: unknown;
  /** Set in a problem, which is an answer without a decision. */
  type?: unknown;
  detail?: unknown;
};

const noVerdict =
  "The request or the service was in no state to be judged: the answer decides nothing of the payment.";

/** Explains an answer that reports no success, by its reason. */
export function explainRefusedAnswer(answer: AnswerMembers): Finding {
  const { errorReason, errorMessage, situation } = answer;
  // A problem, such as the one for an unknown route, may have no reason member.
  const given = errorReason ?? answer.invalidReason ?? problemOf(answer);
  const message = errorMessage ?? answer.invalidMessage ?? answer.detail;
  const sentence = typeof message === "string" && message !== "" ? message : undefined;
  const at = "success" in answer || errorReason !== undefined ? "errorReason" : "invalidReason";
  // Problems, and known reasons that do not refuse the payment.
  const isUndetermined =
    typeof given === "string" &&
    (isProblem(given) || (Object.hasOwn(reasonTexts, given) && !Object.hasOwn(reasons, given)));
  const mistake = isUndetermined ? "undetermined" : "refused";
  const gotWith = (text: string) => `${showValue(given)}: ${text}`;
  const got = sentence === undefined ? showValue(given) : gotWith(sentence);
  if (typeof given !== "string") {
    return finding(mistake, at, { got, why: "The answer names no reason." });
  }
  const reason = (isUndetermined ? problemOf(answer) : undefined) ?? specReason(given);
  const advice = adviceOnReason(reason, situation);
  if (advice === undefined) {
    const why = "The reason is none of this facilitator's: the one that gave it has to say what it means.";
    return finding(mistake, at, { got, why });
  }
  if (sentence !== undefined && isSituation(situation) && !isUndetermined) {
    // An answer from this service: its message may contain the advice already.
    const { fact, why, fix } = adviceOnAnswer(reason, { situation, message: sentence });
    return finding(mistake, at, {
      got: gotWith(fact),
      fix: withRequest(fix, { reason, situation }),
      reason,
      why,
    });
  }
  const fix = isUndetermined ? advice.fix : withRequest(advice.fix, { reason, situation });
  return finding(mistake, at, { got, fix, reason, why: advice.why || noVerdict });
}

/** If the mistake is in the request itself, adds how to find out more, unless the advice already says so. */
function withRequest(fix: string, refused: { reason: string; situation: unknown }): string {
  const isElsewhere = isDecidedBy(refused, "code", "state", "ledger") || fix.includes("`x402-kit explain`");
  return isElsewhere ? fix : `${fix.replace(/[^.]$/, "$&.")} ${mistakes.refused.fix}`;
}

/** The name of the problem that an answer is; undefined for other answers. */
function problemOf({ type }: AnswerMembers): string | undefined {
  const [, name] =
    (typeof type === "string" && /^urn:x402-facilitator-kit:problem:([a-z-]+)$/.exec(type)) || [];
  return name !== undefined && adviceOnReason(name, undefined) !== undefined ? name : undefined;
}
