import { type Finding, finding } from "../protocol/mistakes.ts";
import { parseAmount, type TokenUnits } from "../protocol/token-units.ts";
import { parseUint256 } from "../protocol/wire-values.ts";
import { showValue } from "../util/text.ts";

/** The finding for a member that is missing or of the wrong type. */
export function missing(at: string, value: unknown, expected: string): Finding {
  const hexDigits = typeof value === "string" ? /^0x([0-9a-f]*)$/i.exec(value)?.[1]?.length : undefined;
  const isShort = hexDigits !== undefined && hexDigits < 64 && expected.includes("0x");
  const got = showValue(value);
  return finding("missing-member", at, {
    got: isShort ? `${got}, which has ${hexDigits} hexadecimal digits; an address has 40` : got,
    expected,
    ...(expected !== decimalDigits && {
      why: "The facilitator reads members as they are.",
      fix: `Send ${expected}.`,
    }),
  });
}

const decimalDigits = "a string of decimal digits";

/** Checks that a value is a uint256 as the protocol writes it. With `units` it is an amount, which people write in whole tokens by mistake. */
export function explainNumber(at: string, value: unknown, units?: TokenUnits): Finding[] {
  if (typeof value === "string" && parseUint256(value) !== null) return [];
  if (typeof value === "string" && /^[1-9]\d{77,}$/.test(value)) {
    return [finding("number-too-large", at, { got: showValue(value), expected: "below 2^256" })];
  }
  const unreadable = missing(at, value, decimalDigits);
  if (units === undefined) return [unreadable];
  const { symbol, decimals } = units;
  const text = typeof value === "string" && value.length < 100 ? value : "";
  const [, digits = "", unit = ""] = /^\$?(\d*\.?\d+)\s*(\D.*)?$/.exec(text) ?? [];
  const inTokens = parseAmount(digits, decimals);
  if (
    inTokens !== undefined &&
    ["", "usd", "usdc", "$", symbol.toLowerCase()].includes(unit.toLowerCase()) &&
    /[^\d\s]/.test(text)
  ) {
    return [finding("amount-in-dollars", at, { got: showValue(value), expected: `"${inTokens}"` })];
  }
  return [unreadable];
}

/** Reads a uint256. A number where a text of digits belongs is read too: that mistake is a usual one. */
export function readAnyNumber(value: unknown): bigint | undefined {
  const text = Number.isSafeInteger(value) ? `${value}` : value;
  return typeof text === "string" ? (parseUint256(text) ?? undefined) : undefined;
}
