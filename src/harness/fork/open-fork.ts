import type { ForkSource, OpenForkOptions } from "./fork-options.ts";
import { openRemoteFork } from "./remote-fork.ts";

/**
 * Opens what a chain is forked from, and looks whether it is the network that it should be.
 *
 * @throws {KitError} when the RPC does not answer, refuses, is of another chain or lacks the block; when the recording
 * cannot be read or is of something else
 */
export async function openFork(options: OpenForkOptions): Promise<ForkSource> {
  const { spec } = options;
  if (spec.kind === "remote") return openRemoteFork(options, spec);
  const { openRecordedFork } = await import("./recorded-fork.ts");
  return openRecordedFork(options, spec);
}
