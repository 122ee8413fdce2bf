import type { Chain } from "../../chain/chain.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";

/**
 * Why the contract's limit keeps a payment from being forwarded now, for the operator; undefined when it does not.
 *
 * @param underWay what forwards of the same asset that are not mined yet will take of it
 */
export async function findLimitObstacle(
  chain: Pick<Chain, "network" | "forwardLimit">,
  { asset, value }: Pick<Settlement, "asset" | "value">,
  underWay = 0n,
): Promise<string | undefined> {
  const { limit, available } = await chain.forwardLimit(asset);
  const left = available > underWay ? available - underWay : 0n;
  if (value <= left) return undefined;
  const configured = chain.network.assets.find(({ address }) => sameAddress(address, asset));
  const amount = (units: bigint) => formatAmount(units, configured && unitsOf(configured));
  const [needed, whole] = [amount(value), amount(limit)];
  return value > limit
    ? `its ${needed} are more than the contract's forward limit, ${whole}: the admin has to raise it (setForwardLimit)`
    : `its ${needed} are more than the ${amount(left)} left of the contract's forward limit, ${whole}, which comes back within 24 hours: it waits for that, or for the admin to raise it (setForwardLimit)`;
}
