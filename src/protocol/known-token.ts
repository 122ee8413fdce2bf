import { sameAddress } from "./hex.ts";
import type { Asset, Network } from "./networks.ts";
import { type TokenUnits, unitsOf } from "./token-units.ts";

/** The tokens that a facilitator takes on each network, besides the networks' own; those first that were configured. */
export type KnownTokens = Readonly<Record<string, readonly Asset[]>>;

/** The tokens of networks that have them. */
export function tokensOf(networks: readonly { name: string; assets: readonly Asset[] }[]): KnownTokens {
  return Object.fromEntries(networks.map(({ name, assets }) => [name, assets]));
}

/** The token with this address; undefined where the network has none that is known. */
export function knownToken(
  network: Pick<Network, "name" | "usdc"> | undefined,
  address: string,
  tokens: KnownTokens = {},
): Asset | undefined {
  if (network === undefined) return undefined;
  const all = [...(Object.hasOwn(tokens, network.name) ? (tokens[network.name] ?? []) : []), network.usdc];
  return all.find((token) => sameAddress(token.address, address));
}

/** How the amounts of a payment are shown; null if its token is unknown, or there is no payment. */
export function unitsOfPayment(
  request: { knownNetwork: Network; requirements: { asset: string } } | undefined,
  tokens?: KnownTokens,
): TokenUnits | null {
  const token = request && knownToken(request.knownNetwork, request.requirements.asset, tokens);
  return token === undefined ? null : unitsOf(token);
}
