import type { Receipt } from "../chain/chain.ts";
import { readSettlements } from "../chain/contract/receipt-proof.ts";
import type { Conclusion } from "../ledger/ledger.ts";
import type { AttemptKind, Claim } from "../ledger/settlement.ts";
import type { Address } from "../protocol/hex.ts";
import type { Decision } from "./decision.ts";
import { decideForward } from "./recovery-conclusions.ts";

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
