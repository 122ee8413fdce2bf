import type { ChainQueries } from "../../../chain/chain.ts";
import { type MinedLog, type Receipt, readReceiptsAt } from "../../../chain/logs-and-receipts.ts";
import { decodeRevert, describeRevert } from "../../../chain/revert.ts";
import { type Address, type Hex, sameAddress } from "../../../protocol/hex.ts";
import { goesStraight, isErc6492 } from "../../../protocol/signed-payment.ts";
import { authorizationKey, decodeEvent, decodeEvents, type PaymentEvent } from "../../on-chain/events.ts";
import {
  findContractPayout,
  payoutKey,
  provesForwarding,
  type ReceivedPayment,
  readForwardLimit,
  readReceivedTransfers,
  receivedOf,
} from "../../on-chain/payouts.ts";
import type { Recovery, Search, SettlementProof, Settling, TransferPlace } from "../../on-chain/settling.ts";
import { createIsUsed, wasUsedBy } from "../../on-chain/use-reader.ts";
import { authorizationOf, exactEip3009 } from "../eip3009-method.ts";
import { authorizationUse, endsOf, explain, stateOf } from "./eip3009-state.ts";
import {
  countBatch,
  effectOf,
  findStraightPayout,
  forwardTransaction,
  isLoneTransfer,
  readStraightPayments,
  settlesSeveral,
  settleTransaction,
  usualForward,
  usualSettle,
} from "./eip3009-transaction.ts";

/** `forwardReceived`, for payments that others have submitted. */
export const exactEip3009Recovery: Recovery = {
  transaction: (call, { facilitatorContract: to }) => ({ to, ...forwardTransaction(call) }),
  usual: usualForward,
  proves: (receipt, { facilitatorContract }, call) =>
    provesForwarding("Forwarded", receipt, facilitatorContract, receivedOf(call)),

  limit: readForwardLimit,
  findDirectSubmission,
};

/** A payment directly to its payee is proven by the token's logs alone. */
const prove: Settling["prove"] = (receipt, network, data) => {
  const proofs = readSettlements(receipt, network.facilitatorContract);
  const wentStraight = readStraightPayments(receipt, { isLone: data !== undefined && isLoneTransfer(data) });
  return {
    find(call) {
      if (!goesStraight(call.payment, network)) return proofs.find(receivedOf(call));
      return wentStraight(call.payment) ? { settled: true } : proofs.findFailure(receivedOf(call));
    },
  };
};

/** Settles EIP-3009 payments: through the facilitator contract or directly to the payee, depending on the payment. */
export const exactEip3009Settling: Settling = {
  method: exactEip3009,

  plan({ network }, call) {
    const { payment } = call;
    // If the wallet is deployed first, only a revert is checked.
    const hasEffect = goesStraight(payment, network) && !isErc6492(payment.signature);
    return {
      call,
      transaction: settleTransaction([call], network),
      effect: hasEffect ? effectOf(payment) : undefined,
    };
  },
  transaction: settleTransaction,
  batchKey({ payment }, network) {
    const asset = payment.asset.toLowerCase();
    // A transaction can deploy only one wallet.
    if (isErc6492(payment.signature)) return `${asset} ${payment.payer} ${payment.nonce}`;
    return `${asset} ${goesStraight(payment, network) ? "straight" : "through the contract"}`;
  },
  count: countBatch,
  settlesSeveral,
  usual: usualSettle,

  prove,
  findPayout: (chain, search) =>
    goesStraight(search.payment, chain.network)
      ? findStraightPayout(chain, search)
      : findContractPayout("Forwarded", prove, chain, search),

  stateOf,
  explain,
  isUsed: createIsUsed(authorizationUse),

  async submission(payment) {
    // Loaded lazily: the service never needs it.
    const { encodeSubmission } = await import("./token-calls.ts");
    return { to: payment.asset, data: encodeSubmission(authorizationOf(payment), payment.signature) };
  },
  async cancellation({ asset: to, nonce }, { privateKey, ...token }) {
    const { encodeCancellation } = await import("./token-calls.ts");
    return { to, data: await encodeCancellation(privateKey, token, nonce) };
  },

  recovery: exactEip3009Recovery,
};

type ReadProofs = {
  /** How this settlement ended; undefined if the receipt proves neither success nor failure. */
  find(expected: ReceivedPayment): SettlementProof | undefined;
  /** How this settlement failed; undefined if the receipt does not prove a failure. */
  findFailure(expected: ReceivedPayment): SettlementProof | undefined;
};

/**
 * Reads which settlements a receipt proves to be settled or failed.
 *
 * The proof of success is three logs: `Settled` from the facilitator contract, with the claimed value and recipient, and
 * from the token itself `AuthorizationUsed` for that very authorization and a `Transfer` of the value from the payer to the
 * contract. Each `Transfer` proves one settlement. The proof of failure is `SettlementFailed`. The receipt of a reverted
 * transaction proves nothing about single settlements.
 */
export function readSettlements(receipt: Receipt, facilitatorContract: Address): ReadProofs {
  const claimed: Extract<PaymentEvent, { recipient: Address }>[] = [];
  const settled = new Set<string>();
  const failed = new Map<string, Hex>();
  const used = new Set<string>();
  const received = new Map<string, number>();

  for (const event of decodeEvents(receipt)) {
    const isOurs = sameAddress(event.emitter, facilitatorContract);
    if (event.name === "Settled" && isOurs) claimed.push(event);
    else if (event.name === "SettlementFailed" && isOurs) failed.set(authorizationKey(event), event.reason);
    else if (event.name === "AuthorizationUsed") used.add(authorizationKey(event));
    else if (event.name === "Transfer" && sameAddress(event.to, facilitatorContract)) {
      const transfer = transferKey(event.emitter, event.from, event.value);
      received.set(transfer, (received.get(transfer) ?? 0) + 1);
    }
  }

  for (const event of claimed) {
    const transfer = transferKey(event.token, event.payer, event.value);
    const left = received.get(transfer) ?? 0;
    if (left === 0 || !used.delete(authorizationKey(event))) continue;
    received.set(transfer, left - 1);
    settled.add(payoutKey(event));
  }

  const findFailure = ({ asset: token, ...expected }: ReceivedPayment): SettlementProof | undefined => {
    const reason = failed.get(authorizationKey({ token, ...expected }));
    return reason && { settled: false, failure: describeRevert(decodeRevert(reason)) };
  };
  return {
    find(expected) {
      const { asset: token } = expected;
      return settled.has(payoutKey({ token, ...expected })) ? { settled: true } : findFailure(expected);
    },
    findFailure,
  };
}

function transferKey(token: Address, from: Address, value: bigint): string {
  return `${token} ${from} ${value}`.toLowerCase();
}

/**
 * {@link Recovery.findDirectSubmission}: proven by the token's `AuthorizationUsed` for that very authorization, the token's
 * `Transfer` of that very value right after it, and no `Settled` for it.
 */
export async function findDirectSubmission(
  { reader, readLogs, network: { facilitatorContract } }: ChainQueries,
  { payment, fromBlock, toBlock, id: about }: Search,
): Promise<TransferPlace | "cancelled" | null> {
  const { asset, payer, nonce: authorizationNonce, limit: value } = payment;

  async function findEnd(): Promise<MinedLog | undefined> {
    for await (const [log] of readLogs([{ ...endsOf(payment), about }], fromBlock, toBlock)) {
      if (log !== undefined) return log;
    }
    return undefined;
  }

  const used = await wasUsedBy(reader, authorizationUse, { ...payment, id: about }, toBlock);
  if (used === false) return null;

  const end = await findEnd();
  if (end === undefined) {
    if (used === undefined) return null;
    throw reader.undetermined(
      `an authorization is used by block ${toBlock}, and no log since ${fromBlock} says how`,
    );
  }
  if (decodeEvent(end)?.name === "AuthorizationCanceled") return "cancelled";

  const [receipt] = await readReceiptsAt(reader, [end]);
  if (receipt === undefined) throw reader.undetermined("the receipt of a log is missing");
  const nonce = authorizationNonce.toLowerCase();
  const received = readReceivedTransfers(receipt, asset, facilitatorContract).find(
    (transfer) =>
      sameAddress(transfer.from, payer) && transfer.authorizationNonce === nonce && transfer.value === value,
  );
  if (received === undefined || received.settled) return null;
  const { transactionHash, blockNumber, blockHash } = end;
  return { transactionHash, logIndex: received.logIndex, blockNumber, blockHash };
}
