import type { Chain, Diagnosis, Payout } from "../chain/chain.ts";
import type { FailedSettlement, RecoveryProof } from "../ledger/recoveries.ts";
import { finalitySeconds } from "../protocol/refusals.ts";
import { callOf } from "./slot.ts";
import { finalityMs } from "./vanished.ts";

/**
 * What the chain says of a failed settlement's authorization.
 *
 * | Kind | Meaning |
 * |---|---|
 * | unused | it has not been used |
 * | undone | the block that decided it has vanished, or the node does not have it: the watcher sends it again |
 * | recent | it was used, in blocks that are not deep enough to say how |
 * | spent | it cannot bring us anything: cancelled, used for another recipient or value, or used before the claim |
 * | paid | our own transaction has paid it, and its receipt was not seen before; deep enough |
 * | submitted | submitted straight to the token, after the claim: its value is in the contract, deep enough |
 */
export type FailureFinding =
  /** `over`: no time is left to use it in. */
  | { kind: "unused"; over: boolean }
  | { kind: "undone" }
  | { kind: "paid"; payout: Payout }
  | { kind: "recent"; usedByBlock: bigint }
  /** `over`: blocks that could say otherwise are not replaced any more. */
  | { kind: "spent"; usedByBlock: bigint; over: boolean }
  /** `obstacle`: why its value cannot be forwarded now. */
  | { kind: "submitted"; proof: RecoveryProof; obstacle: string | undefined };

/** How far before the claim logs are searched: a payment that was public before its claim is not paid out. */
const searchBeforeMs = 60 * 60 * 1000;

/**
 * Looks at a failure.
 *
 * @throws UndeterminedError when the chain could not be asked, or does not say how the authorization was used.
 */
export async function classifyFailure(
  chain: Chain,
  { settlement, usedByBlock, recovery }: FailedSettlement,
): Promise<FailureFinding> {
  const { network } = chain;
  const { id, asset, payer, authorizationNonce, value, recipient, claimedBlock, validBefore } = settlement;
  const blocksIn = (ms: number) => BigInt(Math.ceil(ms / network.blockTimeMs));
  const head = await chain.head();
  const deep = head.number - BigInt(network.confirmations) + 1n;
  const known = recovery?.proof.blockNumber ?? claimedBlock;
  const earliest = known - blocksIn(searchBeforeMs);
  const query = {
    id,
    asset,
    payer,
    authorizationNonce,
    value,
    fromBlock: earliest > 0n ? earliest : 0n,
    toBlock: deep,
  };
  /** Our own transaction that paid it after the claim, if any. */
  const findPaid = async (): Promise<FailureFinding | undefined> => {
    const payout = await chain.findPayout({ ...query, recipient });
    return payout === null || payout.blockNumber <= claimedBlock ? undefined : { kind: "paid", payout };
  };

  const [found, state, decidedIn] = await Promise.all([
    chain.findDirectSubmission(query),
    chain.diagnose(callOf(settlement, network.facilitatorContract)),
    settlement.blockNumber === null ? null : chain.blockHash(settlement.blockNumber),
  ]);

  const firstUsed = usedByBlock ?? head.number;
  const spent: FailureFinding = {
    kind: "spent",
    usedByBlock: firstUsed,
    over: deep - firstUsed >= blocksIn(finalityMs),
  };
  if (found === "cancelled") return spent;
  if (found !== null) {
    const { transactionHash, logIndex, blockNumber } = found;
    if (blockNumber <= claimedBlock) return spent;
    const proof = { transactionHash, logIndex, blockNumber };
    // A forward that was signed before may have been mined, whatever became of its receipt.
    const forwarded = recovery === null || recovery.txNonce === null ? undefined : await findPaid();
    if (forwarded !== undefined) return forwarded;
    return { kind: "submitted", proof, obstacle: findObstacle(state) };
  }
  if (!state.authorizationUsed) {
    const over = head.timestamp >= validBefore + BigInt(finalitySeconds);
    const isDecided = over || decidedIn?.toLowerCase() === settlement.blockHash;
    return isDecided ? { kind: "unused", over } : { kind: "undone" };
  }
  if (firstUsed > deep) return { kind: "recent", usedByBlock: firstUsed };
  return (await findPaid()) ?? spent;
}

/** Why a forward would be reverted, as far as state tells. */
function findObstacle(state: Diagnosis): string | undefined {
  if (state.contractPaused) return "the facilitator contract is paused";
  if (state.tokenPaused) return "the token is paused by its issuer";
  if (state.contractBlacklisted) return "the facilitator contract is blacklisted by the token's issuer";
  if (state.recipientBlacklisted) return "the recipient is blacklisted by the token's issuer";
  return undefined;
}
