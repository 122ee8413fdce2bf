import { readReceipt } from "../../chain/receipt-reader.ts";
import { decodeCall } from "../../methods/exact-eip3009/on-chain/decode-call.ts";
import { decodeEvents, type PaymentEvent } from "../../methods/exact-eip3009/on-chain/events.ts";
import { isBytes, isBytes32, readQuantity } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { LoggedPayment } from "../studio/payment-log.ts";
import type { TransactionView } from "../studio/payment-view.ts";
import type { ReadableChain } from "./payment-use.ts";

/**
 * A payment's newest transaction, read from a node and decoded: the call with its payments, without signatures, and
 * the events.
 *
 * @throws {KitError} when the payment has no transaction, or the node does not know it
 */
export async function transactionOf(
  { summary }: LoggedPayment,
  chain: Pick<ReadableChain, "network" | "ask"> | undefined,
): Promise<TransactionView> {
  const { transaction: hash } = summary;
  if (!isBytes32(hash) || chain === undefined)
    throw new KitError("This payment has no transaction: nothing was sent for it");
  const [{ result: sent }, { result: answer }] = await Promise.all([
    chain.ask("eth_getTransactionByHash", hash),
    chain.ask("eth_getTransactionReceipt", hash),
  ]);
  const { input, from, to, gas } = membersOf(sent);
  if (!isBytes(input)) {
    throw new KitError(`The node of ${chain.network.name} does not know transaction ${hash}`);
  }
  const receipt = readReceipt(answer, hash);
  const { gasUsed, effectiveGasPrice } = membersOf(answer);
  const mined = receipt && {
    succeeded: receipt.succeeded,
    blockNumber: `${receipt.blockNumber}`,
    blockHash: receipt.blockHash,
    gasUsed: decimal(gasUsed),
    gasPrice: decimal(effectiveGasPrice),
    fee: receipt.gasCost === undefined ? null : `${receipt.gasCost}`,
    events: decodeEvents(receipt).map(viewOf),
  };
  return {
    ...{ hash, from: textOr(from), to: textOr(to), gasLimit: decimal(gas) },
    call: decodeCall(input),
    mined: mined ?? null,
  };
}

function viewOf({ name, emitter, logIndex, ...fields }: PaymentEvent) {
  const values = Object.entries(fields).map(([key, value]) => [key, `${value}`]);
  return { name, emitter, logIndex, fields: Object.fromEntries(values) };
}

function decimal(value: unknown): string | null {
  const read = readQuantity(value);
  return read === undefined ? null : `${read}`;
}

const textOr = (value: unknown) => (typeof value === "string" ? value : null);
