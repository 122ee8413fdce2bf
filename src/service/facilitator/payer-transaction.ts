import type { Chain } from "../../chain/chain.ts";
import type { PayerTransaction, Plan, SettleCall, Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { poll } from "../../util/waiting.ts";
import { type ApprovalWaits, lookEveryMs } from "./approval-waits.ts";
import type { Waiting } from "./context.ts";
import type { GasLack, Sponsor } from "./sponsor.ts";

/*
 * Some payments need a transaction by their payer first, an approval of Permit2, which comes along signed. It is sent unchanged,
 * before anything is claimed; once it is mined, the payment is like any other. So none of this has to survive the process: a later
 * request for the payment finds the transaction mined, or sends the same bytes again.
 */

/** Where a payment is planned: its chain, and the sponsor of gas money on it. */
type Place = { chain: Chain; sponsor?: Sponsor | undefined };

/**
 * {@link Settling.plan}, but without judging the gas price of the payer's transaction again if the payer has been
 * given gas money, by this request or an earlier one. `isSent` is true if the transaction was sent.
 */
export function planPayment(
  settling: Settling,
  { chain, sponsor }: Place,
  asked: SettleCall,
  isSent = false,
): Plan | Promise<Plan | Invalid> {
  return settling.plan(
    chain,
    asked,
    async () => isSent || ((await sponsor?.gaveLately(asked.payment)) ?? false),
  );
}

/**
 * The payer's coins and the most that the transaction may cost (`needed`), both in wei, and the lack if they do not suffice.
 */
async function gasMoneyOf(
  chain: Chain,
  { from, gas, maxFeePerGas, data }: PayerTransaction,
): Promise<{ has: bigint; needed: bigint; lack: GasLack | undefined }> {
  const bytes = data.length / 2 - 1;
  const { balances, settleCost: dataFee } = await chain.gasMoney([from], { gas: 0n, bytes });
  const [has = 0n] = balances;
  const needed = gas * maxFeePerGas + dataFee;
  // The data fee may rise before the gift arrives.
  const margin = dataFee / 2n;
  const lack = has < needed ? { wei: needed + margin - has, forData: dataFee + margin, gas } : undefined;
  return { has, needed, lack };
}

/** The facts that decide who pays for the payer's transaction. A payer with code gets nothing: it could keep the gift. */
export type GasMoneyOptions = Place & {
  asset: Address;
  payerCode: Hex | null | undefined;
  /** The organization whose payment it is for; undefined if that is not known. */
  organizationId: string | undefined;
};

/**
 * Returns the refusal if nobody would pay for the payer's transaction; undefined if the payer has enough or would
 * be given it.
 */
export async function checkGasMoney(
  transaction: PayerTransaction,
  { chain, sponsor, asset, payerCode, organizationId }: GasMoneyOptions,
): Promise<Invalid | undefined> {
  const { has, needed, lack } = await gasMoneyOf(chain, transaction);
  if (lack === undefined) return undefined;
  const isGiven =
    payerCode === null &&
    (await sponsor?.wouldGive({ asset, payer: transaction.from }, lack, organizationId));
  return isGiven ? undefined : transaction.refuse(has, needed);
}

/**
 * Gives the payer of a transaction what it lacks. Returns false if nothing is given.
 *
 * @throws GasBudgetError when the organization's gas budget does not cover it
 */
export type GiveGasMoney = (lack: GasLack) => Promise<boolean>;

/**
 * Has the payer given what the transaction lacks.
 *
 * @returns true if it can be sent now, or the refusal; undefined while the gift is not mined
 */
async function giveGasMoney(
  transaction: PayerTransaction,
  chain: Chain,
  give: GiveGasMoney,
): Promise<true | Invalid | undefined> {
  const first = await gasMoneyOf(chain, transaction);
  if (first.lack === undefined) return true;
  if (await give(first.lack)) return undefined;
  // An earlier gift may have been mined meanwhile.
  const { has, needed, lack } = await gasMoneyOf(chain, transaction);
  return lack === undefined ? true : transaction.refuse(has, needed);
}

/**
 * Returns the refusal, unless the payer's transaction was mined meanwhile for another payment: the coins it has
 * cost are then missing, but no longer needed.
 *
 * @returns the plan to settle the payment in that case
 */
export async function unlessMined(
  refusal: Invalid,
  settling: Settling,
  chain: Chain,
  asked: SettleCall,
): Promise<Plan | Invalid> {
  const plan = await settling.plan(chain, asked);
  return "reason" in plan || plan.first !== undefined ? refusal : plan;
}

export type PrepareOptions = Waiting & {
  /** Decides if the payment justifies sending its payer's transaction, and who pays for missing gas; called once. */
  check(plan: Plan, first: PayerTransaction): Promise<Invalid | GiveGasMoney>;
  waits: ApprovalWaits;
  organizationId: string;
};

/**
 * Plans a payment, and gets the payer's transaction mined if the payment needs one.
 *
 * @returns the plan by which the payment can be settled now, or the refusal
 * @throws UndeterminedError when the transaction is not mined in time, GasBudgetError when the organization's gas
 * budget does not cover the payment and what the payer lacks. The payment was not sent in either case.
 */
export async function planToSettle(
  settling: Settling,
  place: Place,
  asked: SettleCall,
  { check, waits, organizationId, now, deadline, signal }: PrepareOptions,
): Promise<Plan | Invalid> {
  const plan = await planPayment(settling, place, asked);
  if ("reason" in plan || plan.first === undefined) return plan;
  const { chain } = place;
  let { first } = plan;
  const held = waits.enter({ chain, organizationId, from: first.from });
  try {
    const give = await check(plan, first);
    if ("reason" in give) return await unlessMined(give, settling, chain, asked);
    let isFirstLook = true;
    let isSent = false;
    const look = async (): Promise<Plan | Invalid | undefined> => {
      if (!isFirstLook && (await waits.isOver(chain, first))) {
        const again = await planPayment(settling, place, asked, isSent);
        if ("reason" in again || again.first === undefined) return again;
        first = again.first;
      }
      isFirstLook = false;
      if (!isSent) {
        const paid = await waits.giveGasMoney(chain, { organizationId, hash: first.hash }, () =>
          giveGasMoney(first, chain, give),
        );
        if (paid === undefined) return undefined;
        if (paid !== true) return unlessMined(paid, settling, chain, asked);
      }
      await waits.send(chain, first, isSent);
      isSent = true;
      return undefined;
    };
    const settleable = await poll(look, {
      every: lookEveryMs(chain),
      until: () => now() >= deadline,
      signal,
    });
    if (settleable !== undefined) return settleable;
  } finally {
    held.leave();
  }
  throw new UndeterminedError(
    "The approval that came with the payment is not mined yet, and the payment itself was not sent. Send the same payment again",
  );
}
