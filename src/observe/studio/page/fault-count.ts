import type { FaultView } from "./state.ts";

/** How often a fault has hit, and whether that was all. */
export function countOf({ fired, usedUp }: FaultView): string {
  return `${usedUp ? "used up, " : ""}hit ${fired} ${fired === 1 ? "time" : "times"}`;
}
