import type { CheckMade, ChecksBegun } from "./channels.ts";

/** The checks of a request one by one, each with the time at which it was made, in unix milliseconds. */
export function checksOf({
  checks,
  times,
}: Pick<ChecksBegun, "checks" | "times">): (CheckMade & { readonly at: number })[] {
  return checks.flatMap((list, place) => list.map((made) => ({ ...made, at: times[place] ?? 0 })));
}
