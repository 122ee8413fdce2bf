import { type Finding, finding } from "../../protocol/mistakes.ts";
import type { Asset } from "../../protocol/networks.ts";
import { expiryMarginSeconds, usualMaxValiditySeconds } from "../../protocol/refusals.ts";
import { describeOne, formatAmount, unitsOf } from "../../protocol/token-units.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/show-value.ts";

/** Whole tokens that no single payment is likely to ask for. */
const unlikelyTokens = 1_000_000n;

/** The decimals of ether, which are often taken for those of every token. */
const etherDecimals = 18;

/** Whether `extra` of requirements names the token as it names itself: clients sign for what stands there. */
export function explainExtra(at: string, extra: unknown, { name, version }: Asset): Finding[] {
  const named = membersOf(extra);
  if (named.name === name && named.version === version) return [];
  const given = extra === undefined ? extra : { name: named.name, version: named.version };
  return [
    finding("extra-differs", `${at}.extra`, {
      got: showValue(given),
      expected: JSON.stringify({ name, version }),
    }),
  ];
}

/** What in an offer makes every payment for it fail, although each of its members can be read. */
export function explainOffer(at: string, offer: Record<string, unknown>, token: Asset): Finding[] {
  return [
    ...explainSize(at, offer, token),
    ...explainTimeout(`${at}.maxTimeoutSeconds`, offer.maxTimeoutSeconds),
    ...explainExtra(at, offer.extra, token),
  ];
}

/** The member of requirements that says how much, by the version that they are of. */
export function amountMemberOf(terms: Record<string, unknown>): "amount" | "maxAmountRequired" {
  return terms.maxAmountRequired === undefined ? "amount" : "maxAmountRequired";
}

/** An amount that nobody means: of a token with few decimals, one that was counted with 18. */
function explainSize(at: string, offer: Record<string, unknown>, token: Asset): Finding[] {
  const name = amountMemberOf(offer);
  const text = offer[name];
  const amount = typeof text === "string" ? parseUint256(text) : null;
  const units = unitsOf(token);
  const excess = etherDecimals - units.decimals;
  if (amount === null || excess <= 0 || amount < unlikelyTokens * 10n ** BigInt(units.decimals)) return [];
  const meant = amount / 10n ** BigInt(excess);
  return [
    finding("amount-off-by-decimals", `${at}.${name}`, {
      got: `${amount} (${formatAmount(amount, units)})`,
      expected: `${meant} (${formatAmount(meant, units)}), if it was counted with ${etherDecimals} decimals`,
      fix: `Count in the token's smallest unit: ${describeOne(units)}.`,
    }),
  ];
}

/** Clients sign until `maxTimeoutSeconds` from now. */
function explainTimeout(at: string, seconds: unknown): Finding[] {
  if (typeof seconds !== "number") return [];
  if (seconds > Number(expiryMarginSeconds) && seconds <= Number(usualMaxValiditySeconds)) return [];
  const expected = `more than ${expiryMarginSeconds}, and at most ${usualMaxValiditySeconds} (a day)`;
  return [finding("timeout-out-of-range", at, { got: `${seconds}`, expected })];
}
