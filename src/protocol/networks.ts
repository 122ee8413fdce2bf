import type { Address } from "./hex.ts";

/** The networks of the service, by their x402 v1 names. */
export const networkNames = ["base", "base-sepolia", "optimism", "optimism-sepolia", "polygon"] as const;

/** A network by its x402 v1 name. */
export type NetworkName = (typeof networkNames)[number];

/** Which of the two facilitator contract addresses a network uses: all mainnets share one, both testnets the other. */
export type NetworkTier = "mainnet" | "testnet";

/** An EIP-3009 token as the facilitator knows it. `name` and `version` are those of its EIP-712 domain. */
export type Asset = {
  address: Address;
  name: string;
  version: string;
  decimals: number;
};

/** What is the same about a network for every operator. */
export type Network = {
  name: NetworkName;
  chainId: number;
  /** The x402 v2 name (CAIP-2). */
  caip2: `eip155:${number}`;
  tier: NetworkTier;
  /** Circle's USDC, the asset that is accepted unless configuration says more. */
  usdc: Asset;
  /** Usual time between blocks, in milliseconds; paces the watching of receipts. */
  blockTimeMs: number;
};

const usdc = (address: Address, name: "USD Coin" | "USDC"): Asset => ({
  address,
  name,
  version: "2",
  decimals: 6,
});

const network = (
  name: NetworkName,
  chainId: number,
  tier: NetworkTier,
  blockTimeMs: number,
  asset: Asset,
): Network => ({ name, chainId, caip2: `eip155:${chainId}`, tier, usdc: asset, blockTimeMs });

/**
 * The five networks. The EIP-712 name of USDC differs between mainnets ("USD Coin") and the Sepolia
 * deployments ("USDC"); public tables disagree about it, so `serve` compares `DOMAIN_SEPARATOR()` at start.
 */
export const networks: Readonly<Record<NetworkName, Network>> = {
  base: network(
    "base",
    8453,
    "mainnet",
    2000,
    usdc("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin"),
  ),
  "base-sepolia": network(
    "base-sepolia",
    84532,
    "testnet",
    2000,
    usdc("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC"),
  ),
  optimism: network(
    "optimism",
    10,
    "mainnet",
    2000,
    usdc("0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85", "USD Coin"),
  ),
  "optimism-sepolia": network(
    "optimism-sepolia",
    11155420,
    "testnet",
    2000,
    usdc("0x5fd84259d66Cd46123540766Be93DFE6D43130D7", "USDC"),
  ),
  polygon: network(
    "polygon",
    137,
    "mainnet",
    2000,
    usdc("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin"),
  ),
};

const byV1Name = new Map<string, Network>(networkNames.map((name) => [name, networks[name]]));
const byCaip2 = new Map<string, Network>(networkNames.map((name) => [networks[name].caip2, networks[name]]));

/** The network with a chain id; undefined when unknown. */
export function findNetworkOfChain(chainId: number): Network | undefined {
  return byCaip2.get(`eip155:${chainId}`);
}

/** The network that a caller of the given protocol version means by `spelling`; undefined when unknown. */
export function findNetwork(spelling: string, x402Version: 1 | 2): Network | undefined {
  return x402Version === 1 ? byV1Name.get(spelling) : byCaip2.get(spelling);
}

/** How a network is spelled in the given protocol version: `base` in v1, `eip155:8453` in v2. */
export function formatNetwork(network: Network, x402Version: 1 | 2): string {
  return x402Version === 1 ? network.name : network.caip2;
}
