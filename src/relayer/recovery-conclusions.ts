import type { Receipt } from "../chain/chain.ts";
import { provesForwarding } from "../chain/contract/receipt-proof.ts";
import type { Claim } from "../ledger/settlement.ts";
import type { Address } from "../protocol/hex.ts";
import type { Decision } from "./decision.ts";

/**
 * Reads the receipt of a forward. Here `settled` means paid out, and `failed` that this transaction did nothing: what
 * the payer has paid is still in the contract, or somebody else has taken it out.
 */
export function decideForward(
  receipt: Receipt,
  settlements: readonly Claim[],
  facilitatorContract: Address,
): Decision {
  if (
    receipt.succeeded &&
    !settlements.every((claim) => provesForwarding(receipt, facilitatorContract, claim))
  ) {
    return { kind: "unproven" };
  }
  return {
    kind: "concluded",
    conclusions: settlements.map(({ id }) =>
      receipt.succeeded
        ? { id, state: "settled" }
        : { id, state: "failed", failure: "the forward was mined and reverted" },
    ),
  };
}
