import type { Settling } from "../../methods/on-chain/settling.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { callOf } from "../relayer/slot.ts";
import type { FacilitatorContext } from "./context.ts";
import { notServed } from "./lanes.ts";
import type { SettleablePayment } from "./payment.ts";
import { refuse, type SettleResult } from "./settle-result.ts";

type Describe = NonNullable<Settling["describeSettled"]>;

/**
 * Adds to a success what its payment method reports about it. If the chain cannot be asked now, the payment is
 * pending: the next request gets the success.
 */
export async function withSettledAnswer(
  describe: Describe,
  result: SettleResult,
  { id, network }: SettleablePayment,
  { ledger, networks }: Pick<FacilitatorContext, "ledger" | "networks">,
): Promise<SettleResult> {
  if (result.kind !== "success") return result;
  const settlement = await ledger.claims.find(id);
  if (settlement === null) throw new Error("a settled payment is missing from the ledger");
  const { transactionHash: hash, blockNumber } = settlement;
  try {
    const [{ chain }] = networks.get(network.name) ?? notServed(network.name);
    const call = callOf(settlement, network);
    const { invalid, ...said } = await describe(chain, call, { hash, blockNumber: blockNumber ?? 0n });
    if (invalid === undefined) return { ...result, ...said };
    await result.delivery.delivered();
    return refuse(invalid);
  } catch (error) {
    await result.delivery.lost();
    if (!(error instanceof UndeterminedError)) throw error;
    return { kind: "pending", transaction: hash };
  }
}
