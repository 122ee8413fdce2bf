import type { Ledger } from "../ledger/ledger.ts";
import type { Settlement } from "../ledger/settlement.ts";
import type { Hex } from "../protocol/hex.ts";
import { poll } from "../relayer/poll.ts";

/** How long after its delivery a success may still turn out not to have arrived. */
const bounceMs = 400;
const pollMs = 25;

/**
 * Finds a settlement, and waits while its success has been handed over only just now: a connection that is reset under
 * an answer is noticed a moment after it was written, and a payment repeated at once would be refused as used.
 */
export async function findSettlement(ledger: Ledger, id: Hex, now: () => number): Promise<Settlement | null> {
  const look = async () => {
    const settlement = await ledger.find(id);
    const deliveredAt = settlement?.deliveredAt ?? null;
    return deliveredAt === null || now() - deliveredAt >= bounceMs ? settlement : undefined;
  };
  return (await poll(look, { every: pollMs })) ?? null;
}
