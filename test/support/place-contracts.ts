import type { LocalRpc } from "../../src/chain/rpc/local-rpc.ts";
import { type PlacedContract, runConstructors } from "../../src/harness/setup/place-contract.ts";

/** Places contracts at given addresses, as their constructors leave them. Takes three requests for all of them. */
export async function placeContracts(rpc: LocalRpc, contracts: readonly PlacedContract[]): Promise<void> {
  await rpc.batch(await runConstructors(rpc, contracts));
}
