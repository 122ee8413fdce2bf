import { stat } from "node:fs/promises";
import type { Logger } from "pino";
import { RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { selector } from "../../chain/views.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import type { NetworkName, NetworkRegistry } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { pay } from "../control/pay.ts";
import type { RunningHarness } from "../run/running-harness.ts";
import { startHarness } from "../run/start-harness.ts";
import type { FacilitatorContracts } from "../setup/addresses.ts";
import type { HarnessChain } from "../setup/prepare-chain.ts";

export type RecordForkOptions = {
  network: NetworkName;
  /** The registry that the network is looked up in; the built-in networks by default. */
  knownNetworks?: NetworkRegistry | undefined;
  url: string;
  blockNumber?: bigint | undefined;
  path: string;
  facilitatorContracts: FacilitatorContracts;
  logger: Logger;
  /** Aborts the recording; nothing is written then. */
  signal?: AbortSignal | undefined;
};

/** The token views that tests commonly read, besides balances. */
const tokenViews = [
  "name()",
  "symbol()",
  "decimals()",
  "version()",
  "currency()",
  "totalSupply()",
  "paused()",
  "owner()",
  "pauser()",
  "blacklister()",
  "masterMinter()",
  "rescuer()",
  "DOMAIN_SEPARATOR()",
].map(selector);

const payerNames = Object.keys(testPayers) as TestPayerName[];

/**
 * Forks a network, does what tests usually do on it, and records all requests to the network. Every test payer is funded
 * and pays in both protocol versions, all of them concurrently.
 *
 * @returns the number of the forked block, and the size of the file
 * @throws {KitError} if the network cannot be forked or recorded
 */
export async function recordFork(
  options: RecordForkOptions,
): Promise<{ blockNumber: bigint; bytes: number }> {
  const { network, url, blockNumber, path, facilitatorContracts, logger, signal } = options;
  const harness = await startHarness({
    networks: [network],
    knownNetworks: options.knownNetworks,
    facilitatorContracts,
    fork: { [network]: { url, blockNumber, recordTo: path } },
    host: "127.0.0.1",
    port: 0,
    logger,
    signal,
  });
  const chain = harness.chains[network];
  const fork = chain?.node.fork;
  try {
    if (chain === undefined || fork === undefined) throw new KitError(`${network} was not forked`);
    await exercise(harness, chain, signal);
    // A failed request would be missing in the recording.
    const { latest } = fork.failures();
    if (latest !== undefined) throw latest;
  } catch (error) {
    fork?.keepRecording(false);
    await harness.close();
    throw error;
  }
  await harness.close();
  const { size } = await stat(path);
  return { blockNumber: fork.blockNumber, bytes: size };
}

async function exercise(
  harness: RunningHarness,
  chain: HarnessChain,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { asset, node, network, hasBlacklist } = chain;
  const payers = payerNames.filter((name) => hasBlacklist || name !== "blacklisted");
  payers.push("funded", "funded");
  for (const data of tokenViews) {
    signal?.throwIfAborted();
    await node.request("eth_call", { to: asset.address, data }, "latest").catch((error: unknown) => {
      // Not every token has every view.
      if (!(error instanceof RpcRefusal)) throw error;
    });
  }
  for (const { address } of [
    ...Object.values(testPayers),
    harnessAccounts.recipient,
    harnessAccounts.treasury,
  ]) {
    signal?.throwIfAborted();
    if (address !== testPayers.blacklisted.address) await chain.fund(address, 1n);
  }
  for (const x402Version of [1, 2] as const) {
    signal?.throwIfAborted();
    const order = { network: network.name, amount: 10_000n, x402Version, validForSeconds: 600 };
    const paying = payers.map((payer) => pay(harness.description, { ...order, payer }));
    for (const { settle } of await Promise.all(paying)) {
      if (settle.status === 200) continue;
      throw new KitError(`A payment on the fork of ${network.name} had no outcome`, {
        hints: [JSON.stringify(settle.body)],
      });
    }
  }
}
