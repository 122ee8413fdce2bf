import type { NetworkConfig } from "../../config/serve-config.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { OperatorError, UndeterminedError } from "../../util/errors.ts";
import { chainOf } from "../relayer/slot.ts";
import type { Lane, Lanes } from "./context.ts";

/** @throws UndeterminedError always: only the chain could answer, and this network is not served. */
export function notServed(name: NetworkName): never {
  throw new UndeterminedError(
    `${name} is not served at the moment, and the payment was sent before; send the same payment again`,
  );
}

/** The operators of a network, with their chain set to the facilitator contract that a payment is for. */
export function through({ facilitatorContract: contract }: NetworkConfig, [first, ...others]: Lanes): Lanes {
  if (sameAddress(contract, first.chain.network.facilitatorContract)) return [first, ...others];
  const toContract = (lane: Lane): Lane => ({ ...lane, chain: chainOf(lane.chain, { contract }) });
  return [toContract(first), ...others.map(toContract)];
}

/**
 * Makes a function that sorts operators: those that can settle first, and of these the one with the fewest transactions and
 * queued payments. Equally loaded ones alternate, since all payments of a burst are sorted before the first is queued.
 */
export function createOrder(): (lanes: Lanes) => Lanes {
  /** The number of the choice at which a lane last came first. */
  const turns = new WeakMap<Lane, number>();
  let choices = 0;
  const weigh = ({ relayer, canSend }: Lane) => {
    const { transactions, queued } = relayer.load();
    const isAble = canSend() && !relayer.health.isAvoided();
    return transactions + queued + (isAble ? 0 : Number.MAX_SAFE_INTEGER / 2);
  };
  return (lanes) => {
    const [first, ...others] = lanes;
    if (others.length === 0) return lanes;
    const weighed = lanes
      .map((lane) => ({ lane, weight: weigh(lane), turn: turns.get(lane) ?? 0 }))
      .sort((a, b) => a.weight - b.weight || a.turn - b.turn);
    const [best = first, ...rest] = weighed.map(({ lane }) => lane);
    turns.set(best, ++choices);
    return [best, ...rest];
  };
}

/**
 * Does the work with the first operator that can do it.
 *
 * @throws OperatorError when none can.
 */
export async function withOperator<T>(lanes: Lanes, work: (lane: Lane) => Promise<T>): Promise<T> {
  const [lane, next, ...others] = lanes;
  try {
    return await work(lane);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    lane.relayer.health.failed(error);
    if (next === undefined) throw error;
    return withOperator([next, ...others], work);
  }
}
