import type { NetworkConfig } from "../../src/config/serve-config.ts";
import { localGifts, localTerms, localTip } from "../../src/payer/local-chains.ts";
import type { Address } from "../../src/protocol/hex.ts";
import { type Asset, type Network, networks } from "../../src/protocol/networks.ts";

/** A local chain, base by default, as a service under test is configured for it. */
export function localNetwork(options: {
  rpcUrl: string;
  facilitatorContract: Address;
  network?: Network;
  asset?: Asset;
  blockTimeMs: number;
}): NetworkConfig {
  const { rpcUrl, facilitatorContract, network = networks.base, asset = network.usdc, blockTimeMs } = options;
  return {
    ...network,
    blockTimeMs,
    facilitatorContract,
    rpcUrls: [rpcUrl],
    assets: [asset],
    confirmations: 1,
    forwardEndpoints: 1,
    ...localTerms,
    gifts: localGifts,
    maxFeePerGas: 10n ** 12n,
    usualTip: localTip,
  };
}
