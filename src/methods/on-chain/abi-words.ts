import { uintWord } from "../../protocol/hex.ts";

/** The digits of one ABI word. */
export const wordDigits = 64;

/** The offset of something, counted in digits so far, as the word that points to it. */
export const offset = (digits: number) => uintWord(BigInt(digits / 2));

/** An array of elements of varying length: how many, where each begins (counted from behind that), and they. */
export function encodeArray(elements: readonly string[]): string {
  let position = elements.length * wordDigits;
  let offsets = "";
  for (const element of elements) {
    offsets += offset(position);
    position += element.length;
  }
  return `${uintWord(BigInt(elements.length))}${offsets}${elements.join("")}`;
}
