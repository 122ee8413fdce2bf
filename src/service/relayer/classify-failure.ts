import { isDeepStrictEqual } from "node:util";
import { type Chain, type ChainView, eachEndpoint, failureEndpoints } from "../../chain/chain.ts";
import { smaller } from "../../chain/fees.ts";
import type { Head } from "../../chain/rpc/calls.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { FailedSettlement } from "../../ledger/recoveries.ts";
import { lowerCase } from "../../ledger/rows.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { Payout, Settling, TransferPlace } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { Hex } from "../../protocol/hex.ts";
import { finalitySeconds } from "../../protocol/refusals.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { finalityMs } from "./ledger-comparison.ts";
import { callOf, chainOf } from "./slot.ts";

/**
 * The chain's evidence about a failed settlement's authorization.
 *
 * | Kind | Meaning |
 * |---|---|
 * | unused | it has not been used |
 * | undone | the block that decided it was reorged out, or the node does not have it: the watcher sends it again |
 * | recent | it was used, but its blocks are not deep enough yet to tell how |
 * | spent | it cannot pay us anymore: canceled, used for another recipient or value, or used before the claim |
 * | paid | another transaction paid it, deep enough: ours or, for a payment that goes directly to its payee, anybody's |
 * | submitted | submitted directly to the token, after the claim and deep enough: its value is in the contract |
 * | disputed | RPC endpoints disagree, or too few of them answer |
 */
export type FailureFinding =
  /** `over`: it can no longer be used. */
  | { kind: "unused"; over: boolean }
  | { kind: "undone" }
  | { kind: "paid"; payout: Payout }
  | { kind: "recent"; usedByBlock: bigint }
  /**
   * `over`: the blocks that show this are final. `isShown`: a log shows how it was used. Without such a log, only the
   * absence of a payment log is known, which is proof only if our own transaction did nothing.
   */
  | { kind: "spent"; usedByBlock: bigint; over: boolean; isShown: boolean }
  /** `obstacle`: the reason why its value cannot be forwarded now. */
  | { kind: "submitted"; proof: TransferPlace; obstacle: string | undefined }
  | { kind: "disputed"; problem: string };

/** How long before the claim logs are searched. A payment that was public before its claim is not paid out. */
const searchBeforeMs = 60 * 60 * 1000;

/**
 * How much earlier than its claim a payment's block may be dated, and how much later the newest block at the claim,
 * plus two block times: blocks carry the time at which they were begun, and clocks differ.
 */
const datedBeforeMs = 15_000;

/** The kinds that leave the outcome open, for which one endpoint is enough. */
const openKinds: ReadonlySet<FailureFinding["kind"]> = new Set(["recent", "undone"]);

/**
 * Examines a failure at one endpoint after the other until two agree, if there are two. The logs and the receipt of an
 * endpoint are all the evidence there is: if it lied about a canceled authorization, the payment would be paid from
 * the value of others.
 *
 * A direct submission has an obstacle if fewer endpoints show it than the network's `forwardEndpoints`.
 *
 * @param confirmed transactions that the operator has looked up: for a direct submission in one of them a single
 * endpoint suffices
 * @throws UndeterminedError when the chain could not be asked, or does not tell how the authorization was used.
 */
export async function classifyFailure(
  { chain, ways, now }: { chain: Chain; ways: WaysToPay; now: () => number },
  failure: FailedSettlement,
  confirmed: ReadonlySet<Hex> = new Set(),
): Promise<FailureFinding> {
  const { network } = chain;
  const { forwardEndpoints = failureEndpoints } = network;
  const endpoints = chain.endpoints().length;
  const settling = ways.settlingOf(failure.settlement.method);
  const findings: FailureFinding[] = [];
  for await (const finding of eachEndpoint(chain, (view) =>
    classifyAt(chainOf(view, failure.settlement), settling, failure, now),
  )) {
    if (openKinds.has(finding.kind)) return finding;
    const same = findings.find((other) => saysTheSame(other, finding));
    if (same !== undefined) return join(same, finding);
    findings.push(finding);
    if (finding.kind === "submitted" && forwardEndpoints === 1) return finding;
    if (finding.kind !== "submitted" && endpoints === 1) return finding;
  }
  const [only, ...others] = findings;
  if (only === undefined) throw new UndeterminedError(`${network.name} could not be reached; try again`);
  if (others.length > 0) {
    return {
      kind: "disputed",
      problem: `The RPC endpoints of ${network.name} say different things about how the authorization was used`,
    };
  }
  if (only.kind !== "submitted") {
    return {
      kind: "disputed",
      problem: `Only one of the ${endpoints} RPC endpoints of ${network.name} says how the authorization was used`,
    };
  }
  const { transactionHash } = only.proof;
  if (confirmed.has(transactionHash)) return only;
  return {
    ...only,
    obstacle: `only one RPC endpoint of ${network.name} shows the direct submission in ${transactionHash}. Look the transaction up elsewhere; if it submitted the payment directly to the token, which moved it to the facilitator contract: ${self} recover --network ${network.name} --confirmed ${transactionHash}`,
  };
}

/** Returns true if two endpoints found the same. */
function saysTheSame(one: FailureFinding, other: FailureFinding): boolean {
  if (one.kind === "submitted" && other.kind === "submitted")
    return isDeepStrictEqual(one.proof, other.proof);
  if (one.kind === "paid" && other.kind === "paid") return isDeepStrictEqual(one.payout, other.payout);
  return one.kind === other.kind;
}

/** Combines the findings of two endpoints: over only if both agree. */
function join(one: FailureFinding, other: FailureFinding): FailureFinding {
  const isOver = "over" in other && other.over;
  if (one.kind === "unused") return { ...one, over: one.over && isOver };
  if (one.kind === "spent") {
    const isShown = "isShown" in other && other.isShown;
    return { ...one, over: one.over && isOver, isShown: one.isShown && isShown };
  }
  return one.kind === "submitted" && one.obstacle === undefined ? other : one;
}

/** The finding of one endpoint about a failure. */
async function classifyAt(
  chain: ChainView,
  settling: Settling,
  { settlement, usedByBlock, recovery }: FailedSettlement,
  now: () => number,
): Promise<FailureFinding> {
  const { network } = chain;
  const { window } = settlement;
  const call = callOf(settlement, network);
  const blocksIn = (ms: number) => BigInt(Math.ceil(ms / network.blockTimeMs));
  const head = await chain.head();
  const time = now();
  const claimedBlock = await readClaimedBlock(chain, settlement, { head, time });
  const wasClaimedBefore = async (block: bigint) =>
    (claimedBlock === undefined || block > claimedBlock) &&
    (await sinceClaim(chain, settlement, { block, head, time })).most >= -toleranceOf(network);
  const deep = head.number - BigInt(network.confirmations) + 1n;
  const known =
    recovery?.proof.blockNumber ?? claimedBlock ?? head.number - blocksIn(time - settlement.claimedAt);
  const earliest = known - blocksIn(searchBeforeMs);
  const search = { ...call, fromBlock: earliest > 0n ? earliest : 0n, toBlock: deep };
  /** The transaction that paid it after the claim, if any: an earlier one is not this organization's success. */
  const findPaid = async (): Promise<FailureFinding | undefined> => {
    const payout = await settling.findPayout(chain, search);
    if (payout === null || !(await wasClaimedBefore(payout.blockNumber))) return undefined;
    const { hash, blockHash } = payout;
    return {
      kind: "paid",
      payout: { ...payout, hash: lowerCase(hash), blockHash: lowerCase(blockHash) },
    };
  };

  const [found, state, decidedIn] = await Promise.all([
    settling.recovery?.findDirectSubmission(chain, search) ?? null,
    settling.stateOf(chain, call),
    settlement.blockNumber === null ? null : chain.blockHash(settlement.blockNumber),
  ]);

  const firstUsed = usedByBlock ?? head.number;
  const spent: FailureFinding = {
    kind: "spent",
    usedByBlock: firstUsed,
    over: deep - firstUsed >= blocksIn(finalityMs),
    isShown: found !== null,
  };
  if (found === "cancelled") return spent;
  if (found !== null) {
    if (!(await wasClaimedBefore(found.blockNumber))) return spent;
    // A forward signed earlier may have been mined even if its receipt was never seen.
    const forwarded = recovery === null || recovery.txNonce === null ? undefined : await findPaid();
    if (forwarded !== undefined) return forwarded;
    return { kind: "submitted", proof: inLowerCase(found), obstacle: state.obstacle };
  }
  if (!state.used) {
    const over = head.timestamp > window.last + BigInt(finalitySeconds);
    const isDecided = over || decidedIn?.toLowerCase() === settlement.blockHash;
    return isDecided ? { kind: "unused", over } : { kind: "undone" };
  }
  if (firstUsed > deep) return { kind: "recent", usedByBlock: firstUsed };
  return (await findPaid()) ?? spent;
}

/**
 * The newest block at the claim; a payment to be recovered must be mined after it. The number comes from a single
 * endpoint, and one that is too high would prevent recoveries. So if that block, or the newest one now, is dated well
 * after the claim, this returns undefined, and time alone decides.
 */
async function readClaimedBlock(
  chain: ChainView,
  settlement: Settlement,
  { head, time }: { head: Head; time: number },
): Promise<bigint | undefined> {
  const { claimedBlock } = settlement;
  const block = smaller(claimedBlock, head.number);
  const { least } = await sinceClaim(chain, settlement, { block, head, time });
  return least > toleranceOf(chain.network) ? undefined : claimedBlock;
}

/**
 * How long after a payment's claim a block was mined, in milliseconds, by the block time that this endpoint reports:
 * once by our clock, and once relative to the newest block, since a chain's clock may differ from ours. It is checked
 * in addition to the block number at the claim: the endpoint that named that number may have named an old one, so that
 * an accomplice could claim what others had paid.
 */
async function sinceClaim(
  chain: ChainView,
  { claimedAt }: Pick<Settlement, "claimedAt">,
  { block, head, time }: { block: bigint; head: Head; time: number },
): Promise<{ least: number; most: number }> {
  const minedAt = await chain.blockTime(block);
  const byClock = Number(minedAt) * 1000 - claimedAt;
  const byChain = time - claimedAt - Number(head.timestamp - minedAt) * 1000;
  return { least: Math.min(byClock, byChain), most: Math.max(byClock, byChain) };
}

const toleranceOf = ({ blockTimeMs }: Pick<NetworkConfig, "blockTimeMs">) => datedBeforeMs + 2 * blockTimeMs;

/** Endpoints differ in the case of hashes, which are compared. */
function inLowerCase({ transactionHash, blockHash, ...place }: TransferPlace): TransferPlace {
  return { ...place, transactionHash: lowerCase(transactionHash), blockHash: lowerCase(blockHash) };
}
