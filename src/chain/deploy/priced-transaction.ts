import { setTimeout as delay } from "node:timers/promises";
import { type Address, type Hex, readQuantity } from "../../protocol/hex.ts";
import { formatCoins, plural } from "../../protocol/token-units.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { dataFeeCall, estimateFees, type Fees, pricePerGas, readDataFee, readTip, tipCall } from "../fees.ts";
import { type Receipt, readReceipt } from "../logs-and-receipts.ts";
import { headCall, nativeBalanceCall, readHead, transactionCountCall } from "../rpc/calls.ts";
import { describeError, type RpcAnswer, type RpcCall, type RpcReader } from "../rpc/rpc.ts";
import type { Signer } from "../signing/local-signer.ts";
import { expectAnswer, type OnChain } from "./endpoints.ts";

export type ContractCall = { to: Address; data: Hex };

/** A transaction with its cost, in wei, at the current gas price with the tip that the node suggests. */
export type PricedTransaction = ContractCall & {
  /** The node's estimate. */
  gas: bigint;
  gasLimit: bigint;
  /** `fees` is the offer; `perGas` is the price paid as long as the base fee does not change. */
  price: { fees: Fees; perGas: bigint };
  expectedCost: bigint;
  highestCost: bigint;
};

/** How long to wait for a transaction to be mined, in milliseconds. */
const timeoutMs = 180_000;

/**
 * Estimates the cost of a transaction.
 *
 * @throws KitError when it would revert
 */
export async function priceTransaction(
  { rpc, network }: OnChain,
  from: Address,
  call: ContractCall,
): Promise<PricedTransaction> {
  const [block, tip, dataFeeAnswer, estimate] = await rpc.ask([
    headCall,
    tipCall,
    dataFeeCall(call.data.length / 2),
    { method: "eth_estimateGas", params: [{ from, ...call }] },
  ]);
  const head = expectAnswer("the newest block", block, readHead);
  const fees = estimateFees(head, network, readTip(tip, network));
  const price = { fees, perGas: pricePerGas(head, fees) };
  const dataFee = expectAnswer("the data fee", dataFeeAnswer, readDataFee);
  if (estimate?.error !== undefined) {
    throw new KitError("The transaction would fail", {
      hints: [`The node says: ${describeError(estimate.error)}`],
    });
  }
  const gas = expectAnswer("an estimate of the gas", estimate, readQuantity);
  const gasLimit = gas + gas / 4n;
  return {
    ...call,
    gas,
    gasLimit,
    price,
    expectedCost: gas * price.perGas + dataFee,
    highestCost: gasLimit * price.fees.maxFeePerGas + dataFee,
  };
}

/** Returns an account's native balance, in wei. */
export async function readBalance(rpc: RpcReader, account: Address): Promise<bigint> {
  const [balance] = await rpc.ask([nativeBalanceCall(account)]);
  return expectAnswer("the balance of the account", balance, readQuantity);
}

/**
 * Sends a transaction and waits until it is mined.
 *
 * @throws KitError when it cannot be sent, reverts, or is not mined in time; once it may have been sent, with its
 * hash. The reason of `signal` if that aborts before sending.
 */
export async function sendTransaction(
  { rpc, network }: OnChain,
  signer: Signer,
  transaction: PricedTransaction,
  signal: AbortSignal,
): Promise<Receipt> {
  const { address } = signer;
  const [balance, latest, pending] = await Promise.all([
    readBalance(rpc, address),
    readTransactionCount(rpc, transactionCountCall(address)),
    readTransactionCount(rpc, transactionCountCall(address, "pending")),
  ]);
  if (balance < transaction.highestCost) {
    throw new KitError(`${address} has too little to pay for the transaction; nothing was sent`, {
      hints: [
        `It has ${formatCoins(balance, network)}; send it ${formatCoins(transaction.highestCost - balance, network)} or more.`,
      ],
    });
  }
  if (pending > latest) {
    throw new KitError(
      `${address} has ${plural(pending - latest, "transaction")} under way; nothing was sent`,
      {
        hints: ["Run this again when they are mined. A key that deploys should do nothing else."],
      },
    );
  }
  const { to, data, gasLimit: gas, price } = transaction;
  signal.throwIfAborted();
  const { chainId } = network;
  const { raw, hash } = await signer.signTransaction({
    chainId,
    nonce: latest,
    to,
    data,
    gas,
    ...price.fees,
  });
  await broadcast(rpc, raw, hash);
  const receipt = await waitForReceipt({ rpc, network }, hash, signal);
  if (!receipt.succeeded) throw new KitError(`The transaction ${hash} was mined and reverted`);
  return receipt;
}

/** Sends a signed transaction. A refusal or a missing answer does not prove that the node does not have it. */
async function broadcast(rpc: RpcReader, raw: Hex, hash: Hex): Promise<void> {
  const [sent] = await askIfReachable(rpc, { method: "eth_sendRawTransaction", params: [raw] });
  if (sent?.error === undefined) return;
  const [known] = await askIfReachable(rpc, { method: "eth_getTransactionByHash", params: [hash] });
  if (known === undefined || known.result) return;
  throw new KitError("The node refused the transaction", {
    hints: [`It says: ${describeError(sent.error)}`],
  });
}

async function waitForReceipt({ rpc, network }: OnChain, hash: Hex, signal: AbortSignal): Promise<Receipt> {
  const until = Date.now() + timeoutMs;
  while (Date.now() < until && !signal.aborted) {
    const [answer] = await askIfReachable(rpc, { method: "eth_getTransactionReceipt", params: [hash] });
    const receipt = readReceipt(answer?.result ?? null, hash);
    if (receipt) return receipt;
    // Rejects when the signal aborts, which the loop notices.
    await delay(network.blockTimeMs / 4, undefined, { signal }).catch(() => {});
  }
  const why = signal.aborted ? "when you stopped waiting" : `after ${timeoutMs / 1000} s`;
  throw new KitError(`The transaction ${hash} was sent, and was not mined ${why}`, {
    hints: ["Run this again later: what was mined by then is found in place."],
  });
}

/** Returns an empty list if the node does not answer, because what was sent must be followed up anyway. */
async function askIfReachable(rpc: RpcReader, call: RpcCall): Promise<readonly RpcAnswer[]> {
  try {
    return await rpc.ask([call]);
  } catch (error) {
    if (error instanceof UndeterminedError) return [];
    throw error;
  }
}

async function readTransactionCount(rpc: RpcReader, call: RpcCall): Promise<number> {
  const [count] = await rpc.ask([call]);
  return Number(expectAnswer("the number of the account's transactions", count, readQuantity));
}
