import type { Receipt } from "../chain/chain.ts";
import { readSettlements } from "../chain/receipt-proof.ts";
import type { AttemptKind, Claim, Conclusion } from "../ledger/ledger.ts";
import type { Address } from "../protocol/hex.ts";
import { decideForward } from "./recovery-conclusions.ts";

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

/** Reads the receipt of one attempt against the settlements of its txNonce. */
export function decide(
  receipt: Receipt,
  attempt: { kind: AttemptKind },
  settlements: readonly Claim[],
  facilitatorContract: Address,
): Decision {
  const allFailed = (failure: string): Decision => ({
    kind: "concluded",
    conclusions: settlements.map(({ id }) => ({ id, state: "failed", failure })),
  });
  // No-ops are signed only when every settlement on the txNonce has expired.
  if (attempt.kind === "noop") return allFailed("the authorization expired before it could be mined");
  if (attempt.kind === "forward") return decideForward(receipt, settlements, facilitatorContract);
  if (!receipt.succeeded) {
    return settlements.length > 1 ? { kind: "redrive" } : allFailed("the transaction was reverted");
  }

  const proofs = readSettlements(receipt, facilitatorContract);
  const conclusions: Conclusion[] = [];
  for (const settlement of settlements) {
    const proof = proofs.find(settlement);
    if (proof === undefined) return { kind: "unproven" };
    conclusions.push(
      proof.settled
        ? { id: settlement.id, state: "settled" }
        : { id: settlement.id, state: "failed", failure: proof.failure },
    );
  }
  return { kind: "concluded", conclusions };
}
