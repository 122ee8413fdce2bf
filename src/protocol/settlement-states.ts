/** The states of a settlement; the ledger says what they mean. */
export const settlementStates = ["submitted", "settled", "failed", "recovered"] as const;
