import type { SignedDomain } from "../../methods/method.ts";
import { sameAddress } from "../../protocol/hex.ts";
import { builtInNetworks, type Network } from "../../protocol/networks.ts";

/** Names and versions of USDC and similar tokens. */
const names = ["USD Coin", "USDC", "USD Coin (PoS)", "Bridged USDC", "USD Base Coin"];
const versions = ["2", "1"];

/**
 * The domains that a payer may have signed for by mistake, the likeliest first, because the first match is reported. Some
 * forty: each costs a recovery, and all combinations would be hundreds.
 */
export function otherDomains(network: Network, right: SignedDomain): SignedDomain[] {
  const { asset, chainId } = right;
  const others = builtInNetworks.all.filter(({ name }) => name !== network.name);
  return [
    // This token by another name or version.
    ...namesAndVersions(asset).map((named) => ({ asset: named, chainId })),
    // The network's own token where another is asked for.
    ...(sameAddress(asset.address, network.usdc.address) ? [] : tokensNamed(network.usdc, asset, chainId)),
    ...others.flatMap(({ usdc, chainId: otherChain }) => [
      // All of another network, perhaps by one wrong name or version.
      { asset: usdc, chainId: otherChain },
      ...names
        .filter((name) => name !== usdc.name)
        .map((name) => ({ asset: { ...usdc, name }, chainId: otherChain })),
      ...versions
        .filter((version) => version !== usdc.version)
        .map((version) => ({ asset: { ...usdc, version }, chainId: otherChain })),
      // Its token on this chain, and this token on its chain.
      ...tokensNamed(usdc, asset, chainId),
      ...tokensNamed(asset, usdc, otherChain),
    ]),
  ];
}

function namesAndVersions(asset: SignedDomain["asset"]): SignedDomain["asset"][] {
  return [...new Set([asset.version, ...versions])]
    .flatMap((version) =>
      [...new Set([asset.name, ...names])].map((name) => ({ address: asset.address, name, version })),
    )
    .filter(({ name, version }) => name !== asset.name || version !== asset.version);
}

/** A token on a chain by its own name and version, and by those of another. */
function tokensNamed(
  token: SignedDomain["asset"],
  other: SignedDomain["asset"],
  chainId: number,
): SignedDomain[] {
  const { name, version } = other;
  const isSame = token.name === name && token.version === version;
  return [
    { asset: token, chainId },
    ...(isSame ? [] : [{ asset: { address: token.address, name, version }, chainId }]),
  ];
}

/** Whose token a domain has, where it is another network's: ` (USDC on optimism)`. */
export function homeOf(domain: SignedDomain, right: SignedDomain): string {
  if (sameAddress(domain.asset.address, right.asset.address)) return "";
  const home = builtInNetworks.all.find(({ usdc }) => sameAddress(usdc.address, domain.asset.address));
  return home === undefined || home.chainId === right.chainId ? "" : ` (USDC on ${home.name})`;
}
