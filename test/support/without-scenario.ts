import type { Situation } from "../../src/protocol/catalogue.ts";

/**
 * Situations that no request and no fault in the table leads to: each needs half an hour, another token, an account
 * without gas money, or a chain that is only partly there.
 */
export const withoutScenario: readonly Situation[] = [
  "approval_gas_missing",
  "approval_transaction_fails",
  "asset_paid_otherwise",
  "failed_for_good",
  "never_valid",
  "use_unknown",
  "would_revert",
];
