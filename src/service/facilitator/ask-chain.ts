import type { Bound, Chain, Simulation } from "../../chain/chain.ts";
import type { PayerTransaction, Plan, Settling } from "../../methods/on-chain/settling.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { checkValidityWindow } from "../../protocol/checks.ts";
import type { Hex } from "../../protocol/hex.ts";
import { codeToCome } from "../../protocol/signed-payment.ts";
import { refusedForCode } from "../organizations/organizations.ts";
import type { Examined } from "./examine.ts";

/** The parts of a simulation that a caller needs. */
export type ChainQuestion = {
  withFunds: boolean;
  /** Always read together with the funds. */
  withPayerCode?: boolean;
  bounds?: readonly Bound[] | undefined;
  /** Judges the payer's own transaction, which comes first, after the simulation; returns the refusal to answer with. */
  checkFirst?(
    first: PayerTransaction,
    simulation: Simulation,
    refusal: Invalid | undefined,
  ): Promise<Invalid | undefined>;
};

/**
 * The chain's view of a payment that it does not object to. `payerCode` is the hash of the code at the payer's
 * address; if the payment deploys the wallet, it stands for the code of that wallet.
 */
export type Seen = Pick<Simulation, "head" | "funds"> & { payerCode: Hex | null };

/**
 * Asks the chain about a planned payment: simulates its transaction, after the payer's own if there is one, and
 * checks the validity window, the result and the payer's code.
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
  // The calls by which a shop manages its channels run no code of a payer.
  const isOfShop = settling.identify !== undefined;
  const payerCode = isOfShop ? null : (simulation.payerCode ?? codeToCome(signature));
  const refused = refusedForCode(limits, signed.payer, payerCode);
  if (refused !== undefined) return trail.refuse("payerIsAccepted", refused);
  trail.pass("payerIsAccepted");
  trail.publish();
  return { head, funds, payerCode };
}

/** Explains why a payment would not settle, by its simulation; undefined, without a promise, if the simulation succeeded. */
function explainFailure(
  settling: Settling,
  chain: Chain,
  { call }: Plan,
  { revert, before }: Simulation,
): Promise<Invalid | undefined> | undefined {
  if (before !== undefined) return settling.explainFirst?.(chain, call, before);
  return revert && settling.explain(chain, call, revert);
}
