import type { Invalid } from "../protocol/reasons.ts";
import { refusals } from "../protocol/refusals.ts";

/** Which of an organization's payments on one network are settled. */
export type Limits = {
  /** The least amount of one payment, in the asset's smallest unit; null for any. */
  minimumAmount: bigint | null;
  /** The most that settling for the organization may cost in gas on one day (UTC), in wei; null for any. */
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

/**
 * Why another settlement does not fit the organization's gas budget of the day; undefined when it does. Settlements
 * whose cost is not known yet count like this one, so that many at once do not run past the budget.
 *
 * @param spending what was spent today, in wei, and how many settlements are unfinished
 * @param costOfOne what one settlement costs at most, in wei
 */
export function overGasBudget(
  limits: Limits | undefined,
  spending: { spent: bigint; unfinished: number },
  costOfOne: bigint,
): string | undefined {
  const budget = limits?.dailyGasBudget ?? null;
  if (budget === null) return undefined;
  const expected = spending.spent + BigInt(spending.unfinished + 1) * costOfOne;
  if (expected <= budget) return undefined;
  return `The organization's gas budget of the day is used up: ${spending.spent} of ${budget} wei, and ${spending.unfinished} settlements under way`;
}
