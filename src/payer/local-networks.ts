import type { Address } from "../protocol/hex.ts";
import {
  type BuiltInNetworkName,
  networks as builtIn,
  type NetworkTier,
  networkNames,
} from "../protocol/networks.ts";
import { localContracts, localTokens } from "./local-chains.ts";

/** The values of a local facilitator's network that a shop and a buyer need, so that nobody pastes an address. */
export type LocalNetwork = {
  /** As version 1 of the protocol names it, and version 2. */
  name: BuiltInNetworkName;
  caip2: `eip155:${number}`;
  chainId: number;
  tier: NetworkTier;
  /** The payTo of a shop: the facilitator contract, where `up` and `createHarness` put it by default. */
  payTo: Address;
  /** The token's address, and the name and version that payers sign for. */
  asset: Address;
  extra: { name: string; version: string };
  decimals: number;
  /** The tokens that may be paid with besides, by Permit2: `{ address, name, version, decimals }` of each. */
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
 * The networks of a local facilitator by their names, with the addresses that `up`, `mock`, `createHarness` and the fixtures have
 * unless they are told otherwise.
 *
 * @example
 * const { caip2, payTo, asset, extra } = networks.base;
 * const accepts = { scheme: "exact", network: caip2, payTo, price: { asset, amount: "10000", extra } };
 */
export const networks = Object.fromEntries(
  networkNames.map((name) => [name, localNetwork(name)]),
) as Readonly<Record<BuiltInNetworkName, LocalNetwork>>;
