import { type Address, sameAddress } from "./hex.ts";

/** The built-in networks, by their x402 v1 names. */
export const networkNames = ["base", "base-sepolia", "optimism", "optimism-sepolia", "polygon"] as const;

export type BuiltInNetworkName = (typeof networkNames)[number];

/** A network's x402 v1 name: built in, or added as data. */
export type NetworkName = BuiltInNetworkName | (string & Record<never, never>);

/**
 * Makes the compiler require a source for any named network that is not built in: `networks: ["bsae"]` is an error
 * unless something else defines that network. A name that is only known at runtime is checked then.
 */
export type AddedBy<N extends NetworkName, Source> = [N] extends [BuiltInNetworkName]
  ? unknown
  : string & Record<never, never> extends N
    ? unknown
    : Source;

/** Decides which facilitator contract address a network uses: all mainnets share one, all testnets the other. */
export type NetworkTier = "mainnet" | "testnet";

/**
 * A token that the facilitator knows. `name` and `version` are from its EIP-712 domain; `symbol` is for people, see `unitsOf`.
 */
export type Asset = {
  address: Address;
  name: string;
  /** Empty for a token without such a domain, which cannot be used with EIP-3009. */
  version: string;
  decimals: number;
  symbol?: string | undefined;
  /** The accepted transfer methods; by default all that it supports, see {@link isPaidBy}. */
  transfers?: readonly string[] | undefined;
};

/** True if a token may be paid with this transfer method. */
export function isPaidBy({ version, transfers }: Asset, method: string): boolean {
  return (transfers?.includes(method) ?? true) && (method !== "eip3009" || version !== "");
}

/** Finds an asset by its address in any casing. */
export function findAsset(assets: readonly Asset[], wanted: Address): Asset | undefined {
  return assets.find(({ address }) => sameAddress(address, wanted));
}

/** A network's facts, the same for every operator. */
export type Network = {
  name: NetworkName;
  chainId: number;
  /** The x402 v2 name (CAIP-2). */
  caip2: `eip155:${number}`;
  tier: NetworkTier;
  /** The asset accepted by default: Circle's USDC on the built-in networks. */
  usdc: Asset;
  /** The usual time between blocks, in milliseconds; paces the polling for receipts. */
  blockTimeMs: number;
  /** The coin that pays for gas, such as `ETH`. */
  nativeCoin: string;
  /** A block explorer's URL, without a trailing slash. */
  explorer?: string;
  /** The minimum tip that its nodes expect, in wei per gas; 0.001 gwei by default. */
  usualTip?: number;
};

/** A built-in network, whose name the compiler knows. */
export type BuiltInNetwork<N extends BuiltInNetworkName = BuiltInNetworkName> = Omit<Network, "name"> & {
  name: N;
};

/**
 * The EIP-712 name of USDC differs between mainnets ("USD Coin") and the Sepolia deployments ("USDC"). Public tables
 * disagree about it, so `serve` compares `DOMAIN_SEPARATOR()` at startup.
 */
const network = <N extends BuiltInNetworkName>(
  name: N,
  chainId: number,
  tier: NetworkTier,
  usdc: Address,
): BuiltInNetwork<N> => ({
  name,
  chainId,
  caip2: `eip155:${chainId}`,
  tier,
  usdc: { address: usdc, name: tier === "mainnet" ? "USD Coin" : "USDC", version: "2", decimals: 6 },
  blockTimeMs: 2_000,
  nativeCoin: "ETH",
});

/** The five networks. */
export const networks: { readonly [N in BuiltInNetworkName]: BuiltInNetwork<N> } = {
  base: network("base", 8453, "mainnet", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
  "base-sepolia": network("base-sepolia", 84532, "testnet", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
  optimism: network("optimism", 10, "mainnet", "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85"),
  "optimism-sepolia": network(
    "optimism-sepolia",
    11155420,
    "testnet",
    "0x5fd84259d66Cd46123540766Be93DFE6D43130D7",
  ),
  polygon: {
    ...network("polygon", 137, "mainnet", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"),
    nativeCoin: "POL",
    // Its nodes accept nothing below 25 gwei.
    usualTip: 30_000_000_000,
  },
};

/** A set of networks, found by any of their names. */
export type NetworkRegistry<N extends Network = Network> = {
  readonly all: readonly N[];
  readonly names: readonly NetworkName[];
  /** The network with a v1 name; undefined if unknown. */
  named(name: string): N | undefined;
  /** The network that `spelling` means in the given protocol version; undefined if unknown. */
  find(spelling: string, x402Version: 1 | 2): N | undefined;
  ofChain(chainId: number): N | undefined;
};

/** Creates a registry. Names and chain ids must be unique. */
export function createNetworkRegistry<N extends Network>(all: readonly N[]): NetworkRegistry<N> {
  // Maps, since an object would also have keys like `constructor`.
  const byName = new Map<string, N>(all.map((one) => [one.name, one]));
  const byCaip2 = new Map<string, N>(all.map((one) => [one.caip2, one]));
  return {
    all,
    names: all.map(({ name }) => name),
    named: (name) => byName.get(name),
    find: (spelling, x402Version) => (x402Version === 1 ? byName : byCaip2).get(spelling),
    ofChain: (chainId) => byCaip2.get(`eip155:${chainId}`),
  };
}

/** The five networks that are always known. */
export const builtInNetworks: NetworkRegistry = createNetworkRegistry(
  networkNames.map((name) => networks[name]),
);

/** The five networks plus added ones, which cannot replace a built-in one. */
export function addToBuiltIn(added: readonly Network[]): NetworkRegistry {
  const others = added.filter(({ name }) => builtInNetworks.named(name) === undefined);
  return others.length === 0 ? builtInNetworks : createNetworkRegistry([...builtInNetworks.all, ...others]);
}

/** The built-in network that `spelling` means in the given protocol version; undefined if unknown. */
export function findNetwork(spelling: string, x402Version: 1 | 2): Network | undefined {
  return builtInNetworks.find(spelling, x402Version);
}

/** Spells a network as in the given protocol version: `base` in v1, `eip155:8453` in v2. */
export function formatNetwork(
  network: Pick<Network, "name"> & { caip2: string },
  x402Version: 1 | 2,
): string {
  return x402Version === 1 ? network.name : network.caip2;
}
