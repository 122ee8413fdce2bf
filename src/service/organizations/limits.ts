import type { Invalid } from "../../protocol/catalogue.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { refusals } from "../../protocol/refusals.ts";

/** Which of an organization's payments on one network are settled. */
export type Limits = {
  /** The least amount of one payment, in the asset's smallest unit; null for any. */
  minimumAmount: bigint | null;
  /** The most that settling for the organization may cost in gas on one day (UTC), in wei; null for the network's default. */
  dailyGasBudget: bigint | null;
  /** Whether payers with code are refused: contract wallets, and accounts with a delegate (EIP-7702). */
  refusePayersWithCode: boolean;
};

/**
 * Why a payment is too small for its organization to be settled; undefined when it is not.
 */
export function belowMinimum(limits: Limits | undefined, value: bigint): Invalid | undefined {
  const minimum = limits?.minimumAmount ?? null;
  if (minimum === null || value >= minimum) return undefined;
  return refusals.belowMinimum(value, minimum);
}

/**
 * Why a payer's code keeps its payment from being settled; undefined when it does not.
 *
 * @param payerCode the hash of the code, null for a plain account; undefined if it was not read, which is an error where it
 * decides
 */
export function refusedForCode(
  limits: Limits | undefined,
  payer: Address,
  payerCode: Hex | null | undefined,
): Invalid | undefined {
  if (!limits?.refusePayersWithCode) return undefined;
  if (payerCode === undefined) throw new Error("the payer's code was not read");
  return payerCode === null ? undefined : refusals.payerHasCode(payer);
}
