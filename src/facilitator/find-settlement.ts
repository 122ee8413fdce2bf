import type { Ledger } from "../ledger/ledger.ts";
import type { Settlement } from "../ledger/settlement.ts";
import type { Hex } from "../protocol/hex.ts";

/** How long after its delivery a success may still turn out not to have arrived. */
const bounceMs = 400;
const pollMs = 25;

/**
 * Finds a settlement, and waits while its success has been handed over only just now: a connection that is reset under
 * an answer is noticed a moment after it was written, and whoever repeats the payment at once would be told that it is
 * used.
 */
export async function findSettlement(ledger: Ledger, id: Hex, now: () => number): Promise<Settlement | null> {
  for (;;) {
    const settlement = await ledger.find(id);
    const deliveredAt = settlement?.deliveredAt ?? null;
    if (deliveredAt === null || now() - deliveredAt >= bounceMs) return settlement;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}
