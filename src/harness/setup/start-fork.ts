import { RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { usdcImplementationAddress, usdcSignaturesAddress } from "../../payer/accounts.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import type { Asset, Network } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { findMappingSlot } from "../fork/authorization-slots.ts";
import type { ForkSource, ForkSpec, OpenForkOptions } from "../fork/fork-options.ts";
import { startCalldataGate } from "../fork/fork-server.ts";
import { openRemoteFork } from "../fork/remote-fork.ts";
import type { LaunchOptions } from "../nodes/launch-anvil.ts";
import { type LocalNode, startNode } from "../nodes/nodes.ts";
import { placedAccounts } from "./test-accounts.ts";

export type StartForkOptions = Omit<LaunchOptions, "name" | "chainId" | "fork"> & {
  network: Network;
  spec: ForkSpec;
  facilitatorContract: Address;
  /** The token: the network's real USDC, or a mock that replaces whatever is at the address. */
  asset: Asset;
};

/** Long enough for a busy public node to answer everything that a start needs. */
const startTimeoutMs = 120_000;

/**
 * Starts a node that forks a network. Its time follows this machine's clock.
 *
 * @throws {KitError} like {@link openFork} and {@link startNode}; no process is left running then
 */
export async function startFork(options: StartForkOptions): Promise<LocalNode> {
  const { network, spec, facilitatorContract, asset, ...launch } = options;
  const { name, chainId } = network;
  const mocks = isRealToken(network, asset)
    ? []
    : [asset.address, usdcImplementationAddress, usdcSignaturesAddress];
  const blankAccounts = [...placedAccounts, facilitatorContract, ...mocks];
  const source = await openFork({
    network,
    spec,
    facilitatorContract,
    blankAccounts,
    signal: launch.signal,
  });
  try {
    const fork = { url: source.url, blockNumber: source.blockNumber };
    const node = await startNode({ startTimeoutMs, ...launch, name, chainId, fork });
    try {
      return await connect(node, source);
    } catch (error) {
      await node.stop();
      throw error;
    }
  } catch (error) {
    await source.close();
    // The source knows more about the cause than the node.
    throw source.explainStart(error);
  }
}

/** Returns true if the fork already has the token, so that it must not be replaced. */
export function isRealToken(network: Network, asset: Asset): boolean {
  return sameAddress(asset.address, network.usdc.address);
}

/** Combines a node and its fork source into one node. */
async function connect(node: LocalNode, source: ForkSource): Promise<LocalNode> {
  const gate = await openGate(node, source);
  let stopping: Promise<void> | undefined;

  /** Throws the source's error, which has hints, instead of the node's, which only wraps it. */
  async function explain<T>(asked: () => Promise<T>): Promise<T> {
    const before = source.failures().count;
    try {
      return await asked();
    } catch (error) {
      const { count, latest } = source.failures();
      if (latest === undefined || count === before || !(error instanceof RpcRefusal)) throw error;
      throw new KitError(latest.message, { cause: error, hints: latest.hints });
    }
  }

  return {
    ...node,
    rpcUrl: gate?.url ?? node.rpcUrl,
    fork: source,
    request: (method, ...params) => explain(() => node.request(method, ...params)),
    batch: (calls) => explain(() => node.batch(calls)),
    stop() {
      stopping ??= (async () => {
        await node.stop();
        await gate?.close();
        await source.close();
      })();
      return stopping;
    },
  };
}

/** Opens a gate that lets a recording answer for authorizations signed after it was made. */
async function openGate(node: LocalNode, source: ForkSource) {
  const { address } = source.network.usdc;
  // For a remote too, because a recording of it needs the answers.
  const mappingSlot = await findMappingSlot(node, address, testPayers.funded.address);
  if (mappingSlot === undefined || source.kind === "remote") return undefined;
  const slots = source.expectAuthorizations(address, mappingSlot);
  return startCalldataGate(node.rpcUrl, slots.note);
}

/**
 * Opens the source of a fork and checks that it is the right network.
 *
 * @throws {KitError} if the RPC does not answer, refuses, serves another chain or lacks the block; if the recording cannot be
 *   read or does not match
 */
export async function openFork(options: OpenForkOptions): Promise<ForkSource> {
  const { spec } = options;
  if (spec.kind === "remote") return openRemoteFork(options, spec);
  const { openRecordedFork } = await import("../fork/recording.ts");
  return openRecordedFork(options, spec);
}
