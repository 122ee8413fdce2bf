import type { ChainQueries, Transaction } from "../../../chain/chain.ts";
import { calldataGas } from "../../../chain/fees.ts";
import { describeRevert, type Revert } from "../../../chain/revert.ts";
import type { Hex } from "../../../protocol/hex.ts";
import type { SettleCall, Settling } from "../../on-chain/settling.ts";
import { batchSettlementAddress } from "../contracts.ts";
import { channelErrorOf } from "./channel-errors.ts";
import { type ChannelEvent, channelEvents } from "./channel-events.ts";

/* Shared by the transactions of scheme "batch-settlement", each of which is a single call to the settlement contract. */

/** A call to the settlement contract. `gas` is its limit, excluding calldata. */
export function contractCall(data: Hex, gas: bigint): Transaction {
  return { to: batchSettlementAddress, data, gas: gas + calldataGas(data) };
}

/** The methods of the on-chain part for payments or actions that never share a transaction. */
export function settledAlone(
  transactionOf: (call: SettleCall) => Transaction,
): Pick<Settling, "transaction" | "batchKey" | "count" | "settlesSeveral"> {
  return {
    transaction([call]) {
      if (call === undefined) throw new RangeError("a transaction needs at least one payment");
      return transactionOf(call);
    },
    batchKey: ({ payment: { method, nonceSpace, payer, nonce } }) =>
      `${method} ${nonceSpace} ${payer} ${nonce}`.toLowerCase(),
    count: ([call], _network, { maxFeePerGas, maxCost }) =>
      call !== undefined && transactionOf(call).gas * maxFeePerGas <= maxCost ? 1 : 0,
    settlesSeveral: () => false,
  };
}

/** The methods that only test tools call; they do not support this scheme. */
export const unknownToTests: Pick<Settling, "submission" | "cancellation"> = {
  submission: () => Promise.reject(new Error("scheme batch-settlement is not submitted by hand")),
  cancellation: () => Promise.reject(new Error("scheme batch-settlement is not cancelled by hand")),
};

/** A short description of a revert by the contracts, or by a token that they call. */
export function describeChannelRevert(revert: Revert): string {
  return (revert.kind === "unknown" && channelErrorOf(revert.data)?.name) || describeRevert(revert);
}

/**
 * Reads the amount in an event of a mined transaction.
 *
 * @throws UndeterminedError if no node returns the receipt
 */
export async function readAmount(
  { receipts, reader }: Pick<ChainQueries, "receipts" | "reader">,
  hash: Hex,
  { name, key }: Pick<ChannelEvent, "name" | "key">,
): Promise<bigint> {
  const [receipt] = await receipts([hash]);
  const event = receipt && channelEvents(receipt).find((one) => one.name === name && one.key === key);
  if (!event) throw reader.undetermined(`the receipt of ${hash} is missing, or lacks ${name}`);
  return event.amounts[0];
}
