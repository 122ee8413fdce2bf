import type { Chain, Simulation } from "../../chain/chain.ts";
import type { PayerTransaction, SettleCall, Settling } from "../../methods/on-chain/settling.ts";
import { transactionRefusals } from "../../methods/permit2/approval-transaction.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { poll } from "../../util/waiting.ts";
import type { Waiting } from "./context.ts";

/*
 * A payment whose payer has to send a transaction of his own before it can settle, and has sent it along signed: an approval
 * of Permit2. It is sent as it is, before anything is claimed, and once it is mined the payment is one like any other. So
 * nothing of it has to survive this process: whoever settles the payment again finds it mined, or sends the same bytes again.
 */

/** Why a payment would not settle, by its simulation; undefined where nothing is known against it. */
export async function explainFailure(
  settling: Settling,
  chain: Chain,
  call: SettleCall,
  { revert, before }: Pick<Simulation, "revert" | "before">,
): Promise<Invalid | undefined> {
  if (before !== undefined) return settling.explainBefore?.(chain, call, before);
  return revert && settling.explain(chain, call, revert);
}

/** Why the payer's transaction cannot be paid for; undefined where the payer has enough. */
export async function checkGasMoney(
  chain: Chain,
  transaction: PayerTransaction,
): Promise<Invalid | undefined> {
  const { from, gas, maxFeePerGas, data } = transaction;
  const bytes = data.length / 2 - 1;
  const { balances, settleCost: dataFee } = await chain.gasMoney([from], { gas: 0n, bytes });
  const [has = 0n] = balances;
  const needed = gas * maxFeePerGas + dataFee;
  return has < needed ? transactionRefusals.gasMoneyMissing(from, has, needed) : undefined;
}

/** How often it is looked whether the transaction is mined, and how often its bytes are sent again, in block times. */
const looksPerBlock = 4;
const mostBetweenLooksMs = 500;

/**
 * Prepares a payment, and has the payer's transaction mined that it needs, if any.
 *
 * @param check whether the payment is worth it; asked once, before anything is sent
 * @returns the payment as it can be settled now, or why it cannot be
 * @throws UndeterminedError when the transaction is not mined in time. The payment was not sent then.
 */
export async function prepareToSettle(
  settling: Settling,
  chain: Chain,
  asked: SettleCall,
  {
    check,
    now,
    deadline,
    signal,
  }: Waiting & { check(call: SettleCall, before: PayerTransaction): Promise<Invalid | undefined> },
): Promise<SettleCall | Invalid> {
  const { blockTimeMs } = chain.network;
  let sentAt: number | undefined;

  async function tryToPrepare(): Promise<SettleCall | Invalid | undefined> {
    const call = (await settling.prepare?.(chain, asked)) ?? asked;
    if ("reason" in call) return call;
    const before = settling.before?.(call, chain.network);
    if (before === undefined) return call;
    const refusal = sentAt === undefined ? await check(call, before) : undefined;
    if (refusal !== undefined) return refusal;
    if (sentAt === undefined || now() - sentAt >= blockTimeMs) {
      await chain.broadcast([before.raw], { everywhere: sentAt !== undefined, hashes: [before.hash] });
      sentAt = now();
    }
    return undefined;
  }

  const prepared = await poll(tryToPrepare, {
    every: Math.min(blockTimeMs / looksPerBlock, mostBetweenLooksMs),
    until: () => now() >= deadline,
    signal,
  });
  if (prepared !== undefined) return prepared;
  throw new UndeterminedError(
    "The approval that came with the payment was sent, and is not mined yet; the payment itself was not sent. Send the same payment again",
  );
}
