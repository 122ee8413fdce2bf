import type { AskNode } from "../../chain/rpc/calls.ts";
import { type Address, readQuantity } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { membersOf } from "../../util/json.ts";
import type { PayerState } from "../payment-state.ts";
import { allowanceSource } from "../permit2/on-chain/permit2-state.ts";
import type { NextTransaction } from "../permit2/sign-approval-transaction.ts";
import { nextApprovalOf } from "./allowance.ts";
import { isOfPermit2, type KnownPayment, noncesOf } from "./nonces.ts";
import { amount, askFact, tokenSources, type WordSource } from "./state-facts.ts";

/** The same payment, made with the given token instead of the one that it names. */
export function paymentIn(payment: KnownPayment, { address: asset }: Pick<Asset, "address">): KnownPayment {
  return { ...payment, asset, nonceSpace: isOfPermit2(payment) ? payment.nonceSpace : asset };
}

/** The source of each field of {@link PayerState} for a payment. */
function sourcesOf(payment: KnownPayment): Record<string, WordSource> {
  return {
    authorizationUsed: noncesOf(payment).use,
    ...tokenSources(payment),
    ...(isOfPermit2(payment) && { payerAllowance: allowanceSource(payment) }),
  };
}

/**
 * Asks a node for the state at a block, such as `latest`.
 *
 * @returns undefined if the node no longer has that block, or the address is not a token
 */
export async function askPayerState(
  ask: AskNode,
  payment: KnownPayment,
  block: string,
): Promise<PayerState | undefined> {
  const facts = await Promise.all(
    Object.entries(sourcesOf(payment)).map(
      async ([name, source]) => [name, await askFact(ask, source, block)] as const,
    ),
  );
  if (facts.some(([, fact]) => fact === undefined)) return undefined;
  return Object.fromEntries(facts) as PayerState;
}

/** Asks a node for the payer's next EIP-2612 nonce at a token; 0 if the token has none. */
export async function askNextApproval(ask: AskNode, of: { asset: Address; payer: Address }): Promise<bigint> {
  return (await askFact(ask, amount(nextApprovalOf(of)))) ?? 0n;
}

/**
 * Asks a node for the nonce and fees of an account's next transaction, for an approval. The fees are in wei per gas and
 * allow the base fee to grow by half: the facilitator gives gas money for at most twice the base fee.
 */
export async function askNextTransaction(ask: AskNode, payer: Address): Promise<NextTransaction> {
  const [count, block, tip] = await Promise.all([
    ask("eth_getTransactionCount", payer, "latest"),
    ask("eth_getBlockByNumber", "latest", false),
    ask("eth_maxPriorityFeePerGas"),
  ]);
  const maxPriorityFeePerGas = readQuantity(tip.result) ?? 0n;
  const baseFee = readQuantity(membersOf(block.result).baseFeePerGas) ?? 0n;
  const nonce = Number(readQuantity(count.result) ?? 0n);
  return { nonce, maxPriorityFeePerGas, maxFeePerGas: (3n * baseFee) / 2n + maxPriorityFeePerGas };
}
