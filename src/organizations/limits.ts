import type { Invalid } from "../protocol/reasons.ts";
import { refusals } from "../protocol/refusals.ts";

/** Which of an organization's payments on one network are settled. */
export type Limits = {
  /** The least amount of one payment, in the asset's smallest unit; null for any. */
  minimumAmount: bigint | null;
  /** The most that settling for the organization may cost in gas on one day (UTC), in wei; null for the network's default. */
  dailyGasBudget: bigint | null;
};

/**
 * Why a payment is too small for its organization to be settled; undefined when it is not.
 */
export function belowMinimum(limits: Limits | undefined, value: bigint): Invalid | undefined {
  const minimum = limits?.minimumAmount ?? null;
  if (minimum === null || value >= minimum) return undefined;
  return refusals.belowMinimum(value, minimum);
}
