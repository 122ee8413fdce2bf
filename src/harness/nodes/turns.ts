import type { NetworkName } from "../../protocol/networks.ts";

/** Does a piece of work on a network when all that was asked for before on that network is over. */
export type InTurn = <T>(network: NetworkName, work: () => Promise<T>) => Promise<T>;

/** Turns in the order of the calls: what runs at the same time on a chain would come in another order each time. */
export function createTurns(): InTurn {
  const last = new Map<NetworkName, Promise<unknown>>();
  return (network, work) => {
    const turn = (last.get(network) ?? Promise.resolve()).then(work);
    last.set(
      network,
      turn.catch(() => {}),
    );
    return turn;
  };
}
