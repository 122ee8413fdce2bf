import type { ChainQueries, Receipt } from "../../../chain/chain.ts";
import { readReceiptsAt } from "../../../chain/receipt-reader.ts";
import { addressWord, type Hex, sameAddress } from "../../../protocol/hex.ts";
import { goesStraight } from "../../../protocol/signed-payment.ts";
import {
  type AuthorizationRef,
  authorizationKey,
  decodeEvents,
  type PaymentEvent,
  permit2ForwardedTopic,
  permit2SettledTopic,
} from "../../exact-eip3009/on-chain/events.ts";
import {
  amountOf,
  type Payout,
  type Search,
  type SettleCall,
  type SettlementProof,
} from "../../on-chain/settling.ts";
import { uptoPermit2 } from "../permit2-payload.ts";
import { describePermit2Revert } from "./permit2-calls.ts";
import { findSubmission } from "./submissions.ts";

type Contract = { readonly facilitatorContract: Hex };

/**
 * Reads which settlements a receipt proves, as settled or as failed.
 *
 * Settled takes two logs: `Permit2Settled` of the facilitator contract, with the amount and the recipient that were claimed,
 * and, of the token itself, a `Transfer` of the amount from the payer to where the payer signed it to; each `Transfer` proves
 * one settlement. Neither the event of the proxies nor a used nonce is a proof: the one names no payment, and the other is
 * there for a cancelled one too. Failed takes `Permit2SettlementFailed`. The receipt of a reverted transaction proves nothing
 * of single settlements.
 */
export function readSettlements(
  receipt: Receipt,
  network: Contract,
): { find(call: SettleCall): SettlementProof | undefined } {
  const claimed = new Map<string, number>();
  const failed = new Map<string, Hex>();
  const moved = new Map<string, number>();
  for (const event of decodeEvents(receipt)) {
    const isOurs = sameAddress(event.emitter, network.facilitatorContract);
    if (event.name === "Permit2Settled" && isOurs) count(claimed, payoutKey(event), 1);
    else if (event.name === "Permit2SettlementFailed" && isOurs)
      failed.set(authorizationKey(event), event.reason);
    else if (event.name === "Transfer") count(moved, transferKey(event), 1);
  }
  /** Kept for each payment, so that it is proven as often as it is asked about, and by the same transfer. */
  const proven = new Set<string>();

  return {
    find(call) {
      const { payment, recipient } = call;
      const ref = refOf(call);
      const payout = payoutKey({ ...ref, recipient, value: amountOf(call) });
      if (proven.has(payout)) return { settled: true };
      const transfer = transferKey({
        emitter: payment.asset,
        from: payment.payer,
        to: payment.payTo,
        value: amountOf(call),
      });
      if ((claimed.get(payout) ?? 0) > 0 && (moved.get(transfer) ?? 0) > 0) {
        count(claimed, payout, -1);
        count(moved, transfer, -1);
        proven.add(payout);
        return { settled: true };
      }
      const reason = failed.get(authorizationKey(ref));
      return reason && { settled: false, failure: describePermit2Revert(reason) };
    },
  };
}

/**
 * Whether a receipt proves that what others brought to the facilitator contract was paid out: `Permit2Forwarded` of the
 * contract and, of the token itself, a `Transfer` of the amount from the contract to the recipient.
 */
export function provesForwarding(
  receipt: Receipt,
  { facilitatorContract }: Contract,
  call: SettleCall,
): boolean {
  const { payment, recipient } = call;
  const value = amountOf(call);
  const payout = payoutKey({ ...refOf(call), recipient, value });
  const transfer = transferKey({ emitter: payment.asset, from: facilitatorContract, to: recipient, value });
  const events = decodeEvents(receipt);
  return (
    events.some(
      (event) =>
        event.name === "Permit2Forwarded" &&
        sameAddress(event.emitter, facilitatorContract) &&
        payoutKey(event) === payout,
    ) && events.some((event) => event.name === "Transfer" && transferKey(event) === transfer)
  );
}

/** {@link Settling.findPayout}: our own transaction; or of a payment that goes straight to its payee, anybody's. */
export async function findPayout(chain: ChainQueries, search: Search): Promise<Payout | null> {
  const { reader, readLogs, network } = chain;
  const { fromBlock, toBlock, ...call } = search;
  const { payment, id: about } = call;
  const topics = [
    [permit2SettledTopic, permit2ForwardedTopic],
    `0x${addressWord(payment.asset)}` as const,
    `0x${addressWord(payment.payer)}` as const,
    payment.nonce,
  ];
  const filter = { address: network.facilitatorContract, topics, about };
  for await (const logs of readLogs([filter], fromBlock, toBlock)) {
    for (const receipt of await readReceiptsAt(reader, logs)) {
      const { hash, blockNumber, blockHash } = receipt;
      const place = { hash, blockNumber, blockHash };
      if (readSettlements(receipt, network).find(call)?.settled === true)
        return { kind: "settled", ...place };
      if (provesForwarding(receipt, network, call)) return { kind: "forwarded", ...place };
    }
  }
  // Nobody but the facilitator contract can submit a payment of scheme “upto”.
  if (payment.method === uptoPermit2 || !goesStraight(payment, network)) return null;
  const submission = await findSubmission(chain, search);
  if (submission === null) return null;
  const { transactionHash: hash, blockNumber, blockHash } = submission;
  return { kind: "settled", hash, blockNumber, blockHash };
}

function refOf({ payment }: SettleCall): AuthorizationRef {
  return { token: payment.asset, payer: payment.payer, authorizationNonce: payment.nonce };
}

function payoutKey(payout: AuthorizationRef & { recipient: Hex; value: bigint }): string {
  return `${authorizationKey(payout)} ${payout.recipient.toLowerCase()} ${payout.value}`;
}

function transferKey({
  emitter,
  from,
  to,
  value,
}: Pick<Extract<PaymentEvent, { name: "Transfer" }>, "emitter" | "from" | "to" | "value">): string {
  return `${emitter} ${from} ${to} ${value}`.toLowerCase();
}

function count(counts: Map<string, number>, key: string, by: 1 | -1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
