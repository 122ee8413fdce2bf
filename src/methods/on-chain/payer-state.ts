import { readLog } from "../../chain/logs-and-receipts.ts";
import type { AskNode } from "../../chain/rpc/calls.ts";
import { type Address, quantity, readQuantity } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { membersOf } from "../../util/json.ts";
import type { PayerState } from "../payment-state.ts";
import { allowanceSource, nextApprovalOf } from "../permit2/on-chain/permit2-state.ts";
import type { NextTransaction } from "../permit2/sign-approval-transaction.ts";
import { isOfPermit2, type KnownPayment, noncesOf } from "./nonces.ts";
import { amount, askFact, type RewoundSource, tokenSources } from "./state-facts.ts";

/** A payment as the token of a chain would know it, whatever token it names. */
export function paymentIn(payment: KnownPayment, { address: asset }: Pick<Asset, "address">): KnownPayment {
  return { ...payment, asset, nonceSpace: isOfPermit2(payment) ? payment.nonceSpace : asset };
}

/** How each member of {@link PayerState} is read of a payment, by its name. */
function sourcesOf(payment: KnownPayment, facilitatorContract?: Address): [string, RewoundSource][] {
  const { use, ends, isEnd } = noncesOf(payment, facilitatorContract);
  const isUse = (log: unknown) => {
    const read = readLog(log);
    return read !== undefined && isEnd(read);
  };
  const authorizationUsed: RewoundSource<boolean> = {
    ...use,
    logs: ends,
    before: (now, logged) => now && !logged.flat().some(isUse),
  };
  const payerAllowance = isOfPermit2(payment) && { payerAllowance: allowanceSource(payment) };
  return Object.entries({ authorizationUsed, ...tokenSources(payment), ...payerAllowance });
}

/** @returns undefined where one of them is not known */
async function readEach(
  sources: readonly [string, RewoundSource][],
  read: (source: RewoundSource, name: string) => Promise<boolean | bigint | undefined>,
): Promise<PayerState | undefined> {
  const facts = await Promise.all(
    sources.map(async ([name, source]) => [name, await read(source, name)] as const),
  );
  if (facts.some(([, fact]) => fact === undefined)) return undefined;
  return Object.fromEntries(facts) as PayerState;
}

/**
 * Asks a node for the state at a block, such as `latest`.
 *
 * @returns undefined where it does not say: it has forgotten that block, or the token is none
 */
export function askPayerState(
  ask: AskNode,
  payment: KnownPayment,
  block: string,
): Promise<PayerState | undefined> {
  return readEach(sourcesOf(payment), (source) => askFact(ask, source, block));
}

/** Asks a node for the payer's next nonce at a token, for an approval by EIP-2612; 0 where the token has none. */
export async function askNextApproval(ask: AskNode, of: { asset: Address; payer: Address }): Promise<bigint> {
  return (await askFact(ask, amount(nextApprovalOf(of)))) ?? 0n;
}

/**
 * Works out the state at a block from that at a later one, by what has been logged in between.
 *
 * @returns undefined when the node does not give the logs, or the payer has approved Permit2 in between
 */
export async function rewindPayerState(
  { ask, facilitatorContract }: { ask: AskNode; facilitatorContract: Address },
  payment: KnownPayment,
  { to: wanted, at: known, state }: { to: bigint; at: bigint; state: PayerState },
): Promise<PayerState | undefined> {
  if (known <= wanted) return state;
  const range = { fromBlock: quantity(wanted + 1n), toBlock: quantity(known) };
  const now = new Map<string, boolean | bigint | undefined>(Object.entries(state));

  return readEach(sourcesOf(payment, facilitatorContract), async ({ logs, before }, name) => {
    const answers = await Promise.all(
      logs.map(({ address, topics }) => ask("eth_getLogs", { ...range, address, topics })),
    );
    const logged = answers.flatMap(({ result }) =>
      Array.isArray(result) ? [result as readonly unknown[]] : [],
    );
    const fact = now.get(name);
    return logged.length < logs.length || fact === undefined ? undefined : before(fact, logged);
  });
}

/**
 * Asks a node for the nonce and fees of an account's next transaction, for an approval. The fees are in wei per gas, and leave room
 * for the base fee to grow by a half: gas money is given for no more than twice the base fee.
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
