import type { Receipt } from "../../chain/chain.ts";
import { settlesSeveral } from "../../chain/contract/calldata.ts";
import { provesForwarding, readSettlements } from "../../chain/contract/receipt-proof.ts";
import { readTransaction } from "../../chain/signing/read-transaction.ts";
import type { Conclusion } from "../../ledger/ledger.ts";
import type { Attempt, Claim } from "../../ledger/settlement.ts";
import type { Address } from "../../protocol/hex.ts";

/**
 * What a mined transaction means for its settlements.
 * - `concluded`: it decided every one of them;
 * - `redrive`: it says nothing about a single settlement: a batch that was reverted as a whole, or a no-op in its place;
 * - `unproven`: it says success without proof of every settlement. Such a receipt is not believed.
 */
export type Decision =
  | { kind: "concluded"; conclusions: readonly Conclusion[] }
  | { kind: "redrive" }
  | { kind: "unproven" };

/**
 * Reads the receipt of one attempt against the settlements of its txNonce; `timestamp` is the chain's time. For a
 * forward, `settled` means paid out, and `failed` that this transaction did nothing: what the payer paid is still in the
 * contract, or was taken out by another transaction.
 */
export function decide(
  receipt: Receipt,
  attempt: Pick<Attempt, "kind" | "raw">,
  settlements: readonly Claim[],
  { facilitatorContract, timestamp }: { facilitatorContract: Address; timestamp: bigint },
): Decision {
  const all = (conclusionOf: (claim: Claim) => Conclusion): Decision => ({
    kind: "concluded",
    conclusions: settlements.map(conclusionOf),
  });
  const allFailed = (failure: string) => all(({ id }) => ({ id, state: "failed", failure }));
  switch (attempt.kind) {
    case "noop":
      // One that replaced what no node takes leaves its payments to be sent anew.
      if (settlements.some(({ validBefore }) => validBefore > timestamp)) return { kind: "redrive" };
      return allFailed("the authorization expired before it could be mined");
    case "forward": {
      if (!receipt.succeeded) return allFailed("the forward was mined and reverted");
      const isProven = settlements.every((claim) => provesForwarding(receipt, facilitatorContract, claim));
      return isProven ? all(({ id }) => ({ id, state: "settled" })) : { kind: "unproven" };
    }
    case "settle": {
      if (!receipt.succeeded) {
        // By what was signed: of a batch whose payments are being sent again singly, one may be left.
        return settlesSeveral(readTransaction(attempt.raw).data)
          ? { kind: "redrive" }
          : allFailed("the transaction was reverted");
      }
      const proofs = readSettlements(receipt, facilitatorContract);
      const conclusions: Conclusion[] = [];
      for (const { id, ...expected } of settlements) {
        const proof = proofs.find(expected);
        if (proof === undefined) return { kind: "unproven" };
        conclusions.push(
          proof.settled ? { id, state: "settled" } : { id, state: "failed", failure: proof.failure },
        );
      }
      return { kind: "concluded", conclusions };
    }
  }
}
