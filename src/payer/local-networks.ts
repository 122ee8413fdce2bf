import type { Address } from "../protocol/hex.ts";
import {
  type BuiltInNetworkName,
  networks as builtIn,
  type NetworkTier,
  networkNames,
} from "../protocol/networks.ts";
import { localContracts, localTokens } from "./local-chains.ts";

/** The values of a local network that shops and buyers need, so that nobody has to paste addresses. */
export type LocalNetwork = {
  /** The network's name in version 1 of x402, and (below) in version 2. */
  name: BuiltInNetworkName;
  caip2: `eip155:${number}`;
  chainId: number;
  tier: NetworkTier;
  /** The payTo of a shop: the facilitator contract, at its default address in `up` and `createHarness`. */
  payTo: Address;
  /** The token's address, and (below) the name and version that payers sign for. */
  asset: Address;
  extra: { name: string; version: string };
  decimals: number;
  /** Other accepted tokens, paid with Permit2; each has `{ address, name, version, decimals }`. */
  tokens: typeof localTokens;
};

function localNetwork(name: BuiltInNetworkName): LocalNetwork {
  const { caip2, chainId, tier, usdc } = builtIn[name];
  const extra = { name: usdc.name, version: usdc.version };
  return {
    name,
    caip2,
    chainId,
    tier,
    extra,
    payTo: localContracts[tier],
    asset: usdc.address,
    decimals: usdc.decimals,
    tokens: localTokens,
  };
}

/**
 * The networks of a local facilitator by name, with the default addresses of `up`, `mock`, `createHarness` and the fixtures.
 *
 * @example
 * const { caip2, payTo, asset, extra } = networks.base;
 * const accepts = { scheme: "exact", network: caip2, payTo, price: { asset, amount: "10000", extra } };
 */
export const networks = Object.fromEntries(
  networkNames.map((name) => [name, localNetwork(name)]),
) as Readonly<Record<BuiltInNetworkName, LocalNetwork>>;
