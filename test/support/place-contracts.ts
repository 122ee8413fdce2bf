import type { LocalRpc } from "../../src/chain/rpc/local-rpc.ts";
import { type PlacedContract, runConstructors } from "../../src/harness/setup/place-contract.ts";

/** Puts contracts, as their constructors leave them, at given addresses: three requests for all of them. */
export async function placeContracts(rpc: LocalRpc, contracts: readonly PlacedContract[]): Promise<void> {
  await rpc.batch(await runConstructors(rpc, contracts));
}
