import type { NetworkConfig } from "../config/network-config.ts";
import { explainFailure } from "../deploy/explain-failure.ts";
import type { Address } from "../protocol/hex.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Check } from "./check.ts";
import { checkAssets } from "./check-assets.ts";
import { checkContract } from "./check-contract.ts";
import { checkEndpoints } from "./check-endpoints.ts";
import { checkGasMoney } from "./check-gas-money.ts";
import { checkTxNonces, type TxNonceCheckOptions } from "./check-tx-nonces.ts";

export type NetworkCheckOptions = {
  network: NetworkConfig;
  /** One for each RPC URL of the network, in their order. */
  rpcs: readonly Pick<Rpc, "ask">[];
  operators: readonly Address[];
  recoverer: Address | undefined;
  /** See {@link checkTxNonces}; undefined where there is no ledger to ask. */
  nextTxNonce: TxNonceCheckOptions["nextTxNonce"] | undefined;
  /** Unix milliseconds. */
  now: () => number;
};

/** Compares a network with what the configuration says of it. Never throws; changes nothing. */
export async function checkNetwork(options: NetworkCheckOptions): Promise<readonly Check[]> {
  const { network, rpcs, operators, recoverer, nextTxNonce, now } = options;
  const { checks, usable } = await checkEndpoints(network, rpcs, now);
  if (usable === undefined) return checks;
  const { rpc, head } = usable;
  const others = await Promise.all([
    settle("contract", checkContract(rpc, network, { operators, recoverer })),
    settle("gas money", checkGasMoney(rpc, network, head, { operators, recoverer })),
    settle("asset", checkAssets(rpc, network)),
    nextTxNonce === undefined
      ? []
      : settle("txNonce", checkTxNonces({ rpc, network, operators, nextTxNonce })),
  ]);
  return [...checks, ...others.flat()];
}

/** A check that could not be made is one that failed. */
async function settle(name: string, checks: Promise<readonly Check[]>): Promise<readonly Check[]> {
  try {
    return await checks;
  } catch (error) {
    return [{ name, status: "failed", detail: explainFailure(error), advice: "Run doctor again." }];
  }
}
