import {
  type Invalid,
  isDecidedBy,
  type Situation,
  splitMessage,
  withReasonOfMethod,
} from "../../protocol/catalogue.ts";
import { adviceOnAnswer } from "../../protocol/catalogue-texts.ts";
import { isChannelReason } from "../../protocol/channel-reasons.ts";
import { type Finding, finding, isMistakeId, type Mistake, mistakes } from "../../protocol/mistakes.ts";
import { formatNetwork, type NetworkRegistry } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { parseAmount, type TokenUnits } from "../../protocol/token-units.ts";
import { faults } from "../../protocol/wire-values.ts";
import { showValue } from "../../util/text.ts";
import { networkMeant, rewrite, type Written } from "./explain-written.ts";

/* Explains the faults that the service's own reader and checks find. */

/** The context of a malformed field. */
type MalformedContext = Omit<Written, "problem"> & {
  networks: NetworkRegistry;
  /** The units of the field's token, if the field is an amount. */
  units: TokenUnits | undefined;
};

/** The finding for a field that cannot be read, or for two halves of a payment that do not fit together. */
export function explainMalformed(fault: Invalid, context: MalformedContext): Finding {
  const { at, value, version, networks, units } = context;
  const { situation, got, expected, fact } = fault;
  if (!isDecidedBy(fault, "form")) return explainRefused(fault, at);
  const told = fact.slice(fault.at?.length).replace(/^:? /, "");
  const problem = told.replace(/^must be /, "");
  const facts = { situation, got: showValue(value), expected: problem };
  // A fault with `got` is about the version of the whole payment.
  if (got !== undefined) {
    const ofVersion = { situation, got, ...(expected !== undefined && { expected }) };
    return finding("wrong-version", "paymentPayload.x402Version", ofVersion);
  }
  const rewritten = rewrite({ ...context, problem: told });
  if (at.endsWith(".scheme")) return finding("unknown-scheme", at, facts);
  if (at.endsWith(".network")) {
    if (typeof value === "string" && networks.find(value, version === 1 ? 2 : 1) !== undefined) {
      return finding("wrong-version", at, facts);
    }
    const meant = networkMeant(value, version, networks);
    if (meant !== undefined) {
      const right = { expected: `"${meant}"`, fix: `Write "${meant}", a string, spelled so.` };
      return finding("unknown-network", at, { ...facts, ...right });
    }
    const known = networks.all.map((one) => formatNetwork(one, version)).join(", ");
    return finding("unknown-network", at, { ...facts, expected: `one of ${known}` });
  }
  if (at.endsWith(".signature")) {
    const expected = "65 bytes as hexadecimal after 0x";
    return finding("malformed-signature", at, { ...facts, expected, ...rewritten });
  }
  if (problem === faults.tooLarge) {
    return finding("number-too-large", at, { ...facts, expected: "below 2^256" });
  }
  const meant = units && amountMeant(value, units);
  if (meant !== undefined) return finding("amount-in-dollars", at, { ...facts, expected: `"${meant}"` });
  if (rewritten !== undefined) {
    const isOtherName = value === undefined;
    return finding(isOtherName ? "other-name" : "missing-member", at, { ...facts, ...rewritten });
  }
  const fix = "Send it as a string of decimal digits, as all amounts, times and numbers of what is signed.";
  return finding("missing-member", at, { ...facts, ...(/\bdecimal digits/.test(problem) && { fix }) });
}

/** Converts an amount written in whole tokens to the smallest unit; undefined if the value is not one. */
function amountMeant(value: unknown, { symbol, decimals }: TokenUnits): string | undefined {
  const text = typeof value === "string" && value.length < 100 ? value : "";
  const [, digits = "", unit = ""] = /^\$?(\d*\.?\d+)\s*(\D.*)?$/.exec(text) ?? [];
  const isOfToken = ["", "usd", "usdc", "$", symbol.toLowerCase()].includes(unit.toLowerCase());
  return isOfToken && /[^\d\s]/.test(text) ? parseAmount(digits, decimals) : undefined;
}

/** The mistakes that always mean the same situation. */
const mistakeOfSituation: Partial<Record<Situation, string>> = {
  ...Object.fromEntries(
    Object.entries<Mistake>(mistakes).flatMap(([id, { situation }]) => (situation ? [[situation, id]] : [])),
  ),
  spender_differs: "permit-spender",
  never_valid: "times-in-milliseconds",
};

/** The finding for a refusal by verify's checks (with `request`) or by its reader (without). */
export function explainRefused(
  refusal: Invalid,
  at: string,
  request?: Pick<PaymentRequest, "words" | "x402Version">,
): Finding {
  const { reason, situation, message, got, expected } =
    request === undefined ? refusal : withReasonOfMethod<Invalid>(refusal, request);
  // The table's texts are about single payments, not channels.
  const mistake = isChannelReason(reason) ? undefined : mistakeOfSituation[situation];
  if (mistake === undefined || !isMistakeId(mistake)) {
    const { fact, why, fix } = adviceOnAnswer(reason, { situation, message });
    return { mistake: reason, situation, title: fact, at, why, fix, reason };
  }
  // The advice in the message has this payment's facts.
  const { advice } = splitMessage(message);
  return finding(mistake, at, {
    situation,
    ...(got !== undefined && { got }),
    ...(expected !== undefined && { expected }),
    ...(advice !== undefined && { fix: advice }),
  });
}
