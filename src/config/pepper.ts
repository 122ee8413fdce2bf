import { InvalidValue } from "./values.ts";

const shortest = 32;
const fewestDistinct = 8;

/** What stands in examples, tests and templates, in any casing. */
const knownTexts = /change.?me|example|password|pepper|secret|x402|your.?key|0123456789|abcdefgh/i;

/** Reads the secret that API keys are hashed with; refuses what somebody could guess. */
export function readPepper(text: string): string {
  if (text.length < shortest)
    throw new InvalidValue(`has ${text.length} characters; it needs ${shortest} or more`);
  if (new Set(text).size < fewestDistinct) {
    throw new InvalidValue("repeats a few characters; it must be random");
  }
  if (knownTexts.test(text))
    throw new InvalidValue("holds words that anybody might guess; it must be random");
  return text;
}
