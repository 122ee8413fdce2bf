import type { Address } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import type { ForkOrder } from "./fork-options.ts";
import type { ForkSource } from "./fork-source.ts";
import { openRemoteFork } from "./remote-fork.ts";

export type OpenForkOptions = {
  network: Network;
  order: ForkOrder;
  facilitatorContract: Address;
  /** The accounts that the harness puts in place itself; on the fork nothing of theirs is left. */
  blankAccounts: readonly Address[];
  /** Gives up opening. */
  signal?: AbortSignal | undefined;
};

/**
 * Opens what a chain is forked from, and looks whether it is the network that it should be.
 *
 * @throws {KitError} when the RPC does not answer, refuses, is of another chain or lacks the block; when the recording
 * cannot be read or is of something else
 */
export async function openFork(options: OpenForkOptions): Promise<ForkSource> {
  const { order } = options;
  if (order.kind === "remote") return openRemoteFork(options, order);
  const { openRecordedFork } = await import("./recorded-fork.ts");
  return openRecordedFork(options, order);
}
