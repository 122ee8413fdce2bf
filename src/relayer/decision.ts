import type { Conclusion } from "../ledger/ledger.ts";

/**
 * What a mined transaction means for the settlements on it.
 * - `concluded`: it decided every one of them;
 * - `redrive`: it was reverted as a whole, which for several settlements says nothing of a single one;
 * - `unproven`: it says success without proof of every settlement. Such a receipt is not believed.
 */
export type Decision =
  | { kind: "concluded"; conclusions: readonly Conclusion[] }
  | { kind: "redrive" }
  | { kind: "unproven" };
