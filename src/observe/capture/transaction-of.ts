import { decodeFunctionData } from "viem/utils";
import { readReceipt } from "../../chain/receipt.ts";
import { isBytes, isWord, readQuantity } from "../../chain/rpc/read-hex.ts";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { decodeEvents, type PaymentEvent } from "../../methods/exact-eip3009/on-chain/events.ts";
import type { Hex } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import type { LoggedPayment } from "../studio/payment-log.ts";
import type { CallView, TransactionView } from "../studio/transaction-view.ts";
import type { ReadableChain } from "./readable-chain.ts";

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
  if (!isWord(hash) || chain === undefined)
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

type Authorization = { from: Hex; value: bigint; validAfter: bigint; validBefore: bigint; nonce: Hex };

/** Null for other calldata than a payment's call of the facilitator contract, such as that of a no-op. */
export function decodeCall(input: Hex): CallView | null {
  const decoded = decode(input);
  if (decoded === undefined) return null;
  const { functionName, args } = decoded;
  if (functionName === "settle" || functionName === "forwardReceived") {
    const [asset, authorization, , recipient] = args;
    return { name: functionName, asset, payments: [paymentOf(authorization, recipient)] };
  }
  if (functionName !== "settleBatch") return null;
  const [asset, groups] = args;
  const payments = groups.flatMap((group) =>
    group.payments.map(({ authorization }) => paymentOf(authorization, group.recipient)),
  );
  return { name: functionName, asset, payments };
}

/** Undefined for calldata of another contract. */
function decode(data: Hex) {
  try {
    return decodeFunctionData({ abi: x402FacilitatorAbi, data });
  } catch {
    return undefined;
  }
}

function paymentOf(authorization: Authorization, recipient: Hex): CallView["payments"][number] {
  const { from, value, validAfter, validBefore, nonce } = authorization;
  return {
    ...{ payer: from, recipient, value: `${value}`, authorizationNonce: nonce },
    ...{ validAfter: `${validAfter}`, validBefore: `${validBefore}` },
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
