import type { Attempt, Claim } from "../../ledger/settlement.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import type { Address } from "../../protocol/hex.ts";

/** A stored transaction and its settlements. */
export type Batch = {
  attempt: Attempt;
  settlements: readonly Claim[];
  /** Whether a block held it that has vanished from the chain. */
  hasVanished?: boolean;
};

/**
 * All attempts of one txNonce, of which the chain mines at most one.
 *
 * | State | Meaning | Authority |
 * |---|---|---|
 * | sent | no block is known to hold any of the attempts | the node |
 * | mined | a block holds one of them, not deep enough yet | the receipt |
 * | draining | decided by a transaction that says nothing of them: its settlements move to other txNonces | the receipt, deep enough, or that the txNonce is taken |
 */
export type Slot = {
  txNonce: number;
  attempts: Attempt[];
  settlements: readonly Claim[];
  state: "sent" | "mined" | "draining";
  /** Whether a block that decided it has vanished from the chain, so that it is under way for a second time. */
  hasVanished: boolean;
  /** Unix milliseconds of the last broadcast, of any attempt. */
  lastSentAt: number;
  /** Unix milliseconds of the newest attempt's first broadcast. */
  attemptedAt: number;
  /** Unix milliseconds since when this process knows of it. */
  trackedAt: number;
  /** The most that any of its attempts may cost, in wei: what nodes hold back of the account's gas money. */
  cost: bigint;
  /** Rounds in which it was sent again since it was last looked up whether any node holds it. */
  rounds: number;
  /** How often its receipt said success and proved nothing. */
  unproven: number;
  /** How often no other endpoint confirmed what a receipt says of its payments. */
  unconfirmed: number;
  /** How often another endpoint said something else. */
  contradicted: number;
  /** Unix milliseconds since when the txNonce seems taken by a transaction that is none of ours. */
  takenSince?: number | undefined;
};

/** Looks for which other endpoints may be behind the one that shows a receipt: about half a minute. */
const patienceLooks = 30;

/** Whether a receipt's word stands alone for longer than endpoints are behind one another, or against another's. */
export function isUnconfirmed({ unconfirmed, contradicted }: Slot): boolean {
  return unconfirmed >= patienceLooks || contradicted > 0;
}

/**
 * The payment of a claim, as its way to pay takes it.
 *
 * @param facilitatorContract where the signature lets the money go, unless the claim says otherwise
 */
export function callOf(claim: Claim, facilitatorContract: Address): SettleCall {
  const { id, method, asset, payer, amount, window, nonce, nonceSpace, payload, signature, recipient } =
    claim;
  const payTo = claim.payTo ?? facilitatorContract;
  const payment = { method, payer, payTo, asset, limit: amount, window, nonce };
  return { payment: { ...payment, nonceSpace, signature, payload }, recipient, id };
}
