import type { Receipt } from "../../chain/chain.ts";
import { readTransaction } from "../../chain/signing/read-transaction.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Conclusion } from "../../ledger/ledger.ts";
import type { Attempt, Claim } from "../../ledger/settlement.ts";
import type { Settling } from "../../methods/on-chain/settling.ts";
import { callOf } from "./slot.ts";

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
 * Reads the receipt of one attempt against the settlements of its txNonce, which are all paid the same way; `timestamp` is
 * the chain's time. For a
 * forward, `settled` means paid out, and `failed` that this transaction did nothing: what the payer paid is still in the
 * contract, or was taken out by another transaction.
 */
export function decide(
  receipt: Receipt,
  attempt: Pick<Attempt, "kind" | "raw">,
  settlements: readonly Claim[],
  { network, settling, timestamp }: { network: NetworkConfig; settling: Settling; timestamp: bigint },
): Decision {
  const toCall = (claim: Claim) => callOf(claim, network.facilitatorContract);
  const all = (conclusionOf: (claim: Claim) => Conclusion): Decision => ({
    kind: "concluded",
    conclusions: settlements.map(conclusionOf),
  });
  const allFailed = (failure: string) => all(({ id }) => ({ id, state: "failed", failure }));
  switch (attempt.kind) {
    case "noop":
      // One that replaced what no node takes leaves its payments to be sent anew.
      if (settlements.some(({ window }) => window.last >= timestamp)) return { kind: "redrive" };
      return allFailed("the authorization expired before it could be mined");
    case "forward": {
      if (!receipt.succeeded) return allFailed("the forward was mined and reverted");
      const isProven = settlements.every((claim) =>
        settling.recovery?.proves(receipt, network, toCall(claim)),
      );
      return isProven ? all(({ id }) => ({ id, state: "settled" })) : { kind: "unproven" };
    }
    case "settle": {
      if (!receipt.succeeded) {
        // By what was signed: of a batch whose payments are being sent again singly, one may be left.
        return settling.settlesSeveral(readTransaction(attempt.raw).data)
          ? { kind: "redrive" }
          : allFailed("the transaction was reverted");
      }
      const proofs = settling.prove(receipt, network);
      const conclusions: Conclusion[] = [];
      for (const claim of settlements) {
        const { id } = claim;
        const proof = proofs.find(toCall(claim));
        if (proof === undefined) return { kind: "unproven" };
        conclusions.push(
          proof.settled ? { id, state: "settled" } : { id, state: "failed", failure: proof.failure },
        );
      }
      return { kind: "concluded", conclusions };
    }
  }
}
