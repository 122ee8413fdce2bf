import type { Chain } from "../../chain/chain.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { Recovery } from "../../methods/on-chain/settling.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";

/**
 * Why the contract's limit keeps a payment from being forwarded now, for the operator; undefined when it does not.
 *
 * @param underWay what forwards of the same asset that are not mined yet will take of it
 */
export async function findLimitObstacle(
  chain: Chain,
  recovery: Pick<Recovery, "limit">,
  { asset, amount: value }: Pick<Settlement, "asset" | "amount">,
  underWay = 0n,
): Promise<string | undefined> {
  const { limit, available } = await recovery.limit(chain, asset);
  const left = available > underWay ? available - underWay : 0n;
  if (value <= left) return undefined;
  const configured = chain.network.assets.find(({ address }) => sameAddress(address, asset));
  const show = (units: bigint) => formatAmount(units, configured && unitsOf(configured));
  const [needed, whole] = [show(value), show(limit)];
  return value > limit
    ? `its ${needed} are more than the contract's forward limit, ${whole}: the admin has to raise it (setForwardLimit)`
    : `its ${needed} are more than the ${show(left)} left of the contract's forward limit, ${whole}, which comes back within 24 hours: it waits for that, or for the admin to raise it (setForwardLimit)`;
}
