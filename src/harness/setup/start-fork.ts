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
  /** The token: the network's USDC as it is there, or a mock where there may be something else. */
  asset: Asset;
};

/** As long as a busy public node may take for what a start needs. */
const startTimeoutMs = 120_000;

/**
 * Starts a node that forks a network, on the time of the clock.
 *
 * @throws {KitError} as {@link openFork} and {@link startNode} do; no process is left then
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
    // The source knows more of the cause than the node does.
    throw source.explainStart(error);
  }
}

/** Returns true if a token is on a fork already, and is not to be replaced. */
export function isRealToken(network: Network, asset: Asset): boolean {
  return sameAddress(asset.address, network.usdc.address);
}

/** Joins a node and what it forks from into one node. */
async function connect(node: LocalNode, source: ForkSource): Promise<LocalNode> {
  const gate = await openGate(node, source);
  let stopping: Promise<void> | undefined;

  /** Throws the error of the fork's source instead of the node's, which only wraps it: it says what to do. */
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

/** Lets a recording answer for authorizations that are signed only now. */
async function openGate(node: LocalNode, source: ForkSource) {
  const { address } = source.network.usdc;
  // Of a remote too: a recording of it will need the answers.
  const mappingSlot = await findMappingSlot(node, address, testPayers.funded.address);
  if (mappingSlot === undefined || source.kind === "remote") return undefined;
  const slots = source.expectAuthorizations(address, mappingSlot);
  return startCalldataGate(node.rpcUrl, slots.note);
}

/**
 * Opens what a chain is forked from, and looks whether it is the network that it should be.
 *
 * @throws {KitError} when the RPC does not answer, refuses, is of another chain or lacks the block; when the recording
 * cannot be read or is of something else
 */
export async function openFork(options: OpenForkOptions): Promise<ForkSource> {
  const { spec } = options;
  if (spec.kind === "remote") return openRemoteFork(options, spec);
  const { openRecordedFork } = await import("../fork/recording.ts");
  return openRecordedFork(options, spec);
}
