import type { Bound, Chain, Simulation } from "../../chain/chain.ts";
import type { PayerTransaction, Plan, Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { checkValidityWindow } from "../../protocol/checks.ts";
import type { Hex } from "../../protocol/hex.ts";
import { codeToCome } from "../../protocol/signed-payment.ts";
import { refusedForCode } from "../organizations/organizations.ts";
import type { Examined } from "./examine.ts";

/** How much is asked about a payment. */
export type ChainQuestion = {
  withFunds: boolean;
  /** Read with the funds at any rate. */
  withPayerCode?: boolean;
  bounds?: readonly Bound[] | undefined;
  /** Judges the payer's own transaction, which comes first, after the simulation: gives the refusal that then holds. */
  checkFirst?(
    first: PayerTransaction,
    simulation: Simulation,
    refusal: Invalid | undefined,
  ): Promise<Invalid | undefined>;
};

/**
 * The answer about a payment that nothing stands against. `payerCode` is the hash of the code at the payer's address, or stands for
 * that of the wallet that the payment deploys.
 */
export type Seen = Pick<Simulation, "head" | "funds"> & { payerCode: Hex | null };

/**
 * Asks the chain about a planned payment: simulates its transaction, behind the payer's own if there is one, and judges the window,
 * the simulation and the payer's code.
 *
 * @throws UndeterminedError when the chain could not be asked
 */
export async function askChain(
  { payment, caller, signature, trail }: Examined,
  chain: Chain,
  settling: Settling,
  plan: Plan,
  { withFunds, withPayerCode, bounds, checkFirst }: ChainQuestion,
): Promise<Seen | Invalid> {
  const { id, signed, words, requirements, network } = payment;
  const limits = caller?.organization.limits[network.name];
  trail.publish();
  const simulation = await chain.simulate(plan.transaction, {
    payer: signed.payer,
    asset: signed.asset,
    withFunds,
    bounds,
    withPayerCode: withFunds || withPayerCode || (limits?.refusePayersWithCode ?? false),
    effect: plan.effect,
    before: plan.first,
    id,
  });
  const { head, funds } = simulation;
  const window = { payment: signed, words, requirements };
  const outside = checkValidityWindow(window, head.timestamp, chain.network);
  if (outside !== undefined) return trail.refuse("windowIsOpen", outside);
  trail.pass("windowIsOpen");
  const failure = explainFailure(settling, chain, plan, simulation);
  let refusal = failure && (await failure);
  if (plan.first && checkFirst) refusal = await checkFirst(plan.first, simulation, refusal);
  if (refusal !== undefined) return trail.refuse("simulationSucceeds", refusal);
  trail.pass("simulationSucceeds");
  // What a shop does with its channels runs no code of a payer's.
  const isOfShop = settling.identify !== undefined;
  const payerCode = isOfShop ? null : (simulation.payerCode ?? codeToCome(signature));
  const refused = refusedForCode(limits, signed.payer, payerCode);
  if (refused !== undefined) return trail.refuse("payerIsAccepted", refused);
  trail.pass("payerIsAccepted");
  trail.publish();
  return { head, funds, payerCode };
}

/** Why a payment would not settle, by its simulation; undefined, without a promise, where nothing is known against it. */
function explainFailure(
  settling: Settling,
  chain: Chain,
  { call }: Plan,
  { revert, before }: Simulation,
): Promise<Invalid | undefined> | undefined {
  if (before !== undefined) return settling.explainFirst?.(chain, call, before);
  return revert && settling.explain(chain, call, revert);
}
