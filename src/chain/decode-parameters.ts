import { type Hex, wordAt } from "../protocol/hex.ts";

/**
 * Decodes ABI-encoded parameters of elementary types, which is what errors and events of the contract carry:
 * integers as bigint, `bool`, `string`, and everything else (addresses, bytes) as hex. viem's decoder does more,
 * but loading it takes longer than starting the service may.
 *
 * `string` and `bytes` may end early: the contract cuts a token's reason after MAX_REASON_LENGTH bytes.
 *
 * @returns undefined when the data is too short, or a type is none of these
 */
export function decodeParameters(types: readonly string[], data: Hex): readonly unknown[] | undefined {
  const values: unknown[] = [];
  for (const [index, type] of types.entries()) {
    const word = wordAt(data, index);
    const value = word === undefined ? undefined : decodeParameter(type, word, data);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

function decodeParameter(type: string, word: string, data: Hex): unknown {
  if (type === "string" || type === "bytes") {
    const digits = tailAt(data, word);
    if (digits === undefined) return undefined;
    return type === "bytes" ? `0x${digits}` : Buffer.from(digits, "hex").toString();
  }
  if (/^uint\d+$/.test(type)) return BigInt(`0x${word}`);
  if (/^int\d+$/.test(type)) return BigInt.asIntN(256, BigInt(`0x${word}`));
  if (type === "bool") return BigInt(`0x${word}`) !== 0n;
  if (type === "address") return `0x${word.slice(24)}`;
  const size = /^bytes(\d+)$/.exec(type)?.[1];
  return size && `0x${word.slice(0, Number(size) * 2)}`;
}

/** The digits of bytes that stand at an offset, behind their length. */
function tailAt(data: Hex, offsetWord: string): string | undefined {
  const start = digitsOf(offsetWord);
  const length = digitsOf(data.slice(2 + start, 2 + start + 64));
  const begin = 2 + start + 64;
  return data.length < begin ? undefined : data.slice(begin, begin + length);
}

/** A number of bytes as the number of their digits; beyond any real data when it is too large to be true. */
function digitsOf(word: string): number {
  return Number(BigInt(`0x${word || "0"}`)) * 2;
}
