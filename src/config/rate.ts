import { InvalidValue, readWholeNumber } from "./values.ts";

/** How many requests are taken: `burst` at once, and `perSecond` in the long run. */
export type RequestRate = { readonly perSecond: number; readonly burst: number };

const most = 1_000_000;

/** Reads `PER_SECOND/BURST`. */
export function readRate(text: string): RequestRate {
  const [perSecond = "", burst = "", ...more] = text.split("/").map((part) => part.trim());
  if (burst === "" || more.length > 0) throw new InvalidValue("is not of the form PER_SECOND/BURST");
  return { perSecond: readWholeNumber(1, most)(perSecond), burst: readWholeNumber(1, most)(burst) };
}
