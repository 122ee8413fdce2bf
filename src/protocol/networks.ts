import { type Address, sameAddress } from "./hex.ts";

/** The networks that are built in, by their x402 v1 names. */
export const networkNames = ["base", "base-sepolia", "optimism", "optimism-sepolia", "polygon"] as const;

export type BuiltInNetworkName = (typeof networkNames)[number];

/** A network by its x402 v1 name: a built-in one, or one that was added as data. */
export type NetworkName = BuiltInNetworkName | (string & Record<never, never>);

/**
 * Has the compiler ask for what adds a network where one is named that is not built in: `networks: ["bsae"]` is a mistake,
 * unless something else knows it. A name that is only known when it runs is checked then.
 */
export type AddedBy<N extends NetworkName, Source> = [N] extends [BuiltInNetworkName]
  ? unknown
  : string & Record<never, never> extends N
    ? unknown
    : Source;

/** Which of the two facilitator contract addresses a network uses: all mainnets share one, all testnets the other. */
export type NetworkTier = "mainnet" | "testnet";

/**
 * A token as the facilitator knows it. `name` and `version` are those of its EIP-712 domain; people read amounts with its
 * `symbol`: see `unitsOf`.
 */
export type Asset = {
  address: Address;
  name: string;
  /** Empty for a token without such a domain, which has no EIP-3009. */
  version: string;
  decimals: number;
  symbol?: string | undefined;
  /** How it may be paid with; in each way that it has by default: see {@link isPaidBy}. */
  transfers?: readonly string[] | undefined;
};

/** Returns true if a token may be paid with in this way. */
export function isPaidBy({ version, transfers }: Asset, method: string): boolean {
  return (transfers?.includes(method) ?? true) && (method !== "eip3009" || version !== "");
}

/** The one with this address, however that is spelled; undefined where there is none. */
export function findAsset(assets: readonly Asset[], wanted: Address): Asset | undefined {
  return assets.find(({ address }) => sameAddress(address, wanted));
}

/** A network, as it is for every operator. */
export type Network = {
  name: NetworkName;
  chainId: number;
  /** The x402 v2 name (CAIP-2). */
  caip2: `eip155:${number}`;
  tier: NetworkTier;
  /** The asset that is accepted by default: Circle's USDC on the built-in networks. */
  usdc: Asset;
  /** Usual time between blocks, in milliseconds; paces the watching of receipts. */
  blockTimeMs: number;
  /** The coin that gas is paid in: `ETH`. */
  nativeCoin: string;
  /** A block explorer's address, without a slash at the end. */
  explorer?: string;
  /** The tip that its nodes expect at least, in wei per gas; 0.001 gwei by default. */
  usualTip?: number;
};

/** A built-in network, whose name the compiler knows. */
export type BuiltInNetwork<N extends BuiltInNetworkName = BuiltInNetworkName> = Omit<Network, "name"> & {
  name: N;
};

/**
 * The EIP-712 name of USDC differs between mainnets ("USD Coin") and the Sepolia deployments ("USDC"); public tables
 * disagree about it, so `serve` compares `DOMAIN_SEPARATOR()` at start.
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
    // Its nodes take nothing below 25 gwei.
    usualTip: 30_000_000_000,
  },
};

/** A set of networks, found by any of their names. */
export type NetworkRegistry<N extends Network = Network> = {
  readonly all: readonly N[];
  readonly names: readonly NetworkName[];
  /** The network of a v1 name; undefined when unknown. */
  named(name: string): N | undefined;
  /** The network that a caller of the given protocol version means by `spelling`; undefined when unknown. */
  find(spelling: string, x402Version: 1 | 2): N | undefined;
  ofChain(chainId: number): N | undefined;
};

/** Makes a registry. Names and chain ids are each there once. */
export function createNetworkRegistry<N extends Network>(all: readonly N[]): NetworkRegistry<N> {
  // Maps, since an object would also know names like `constructor`.
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

/** The five networks and added ones, which cannot replace a built-in one. */
export function addToBuiltIn(added: readonly Network[]): NetworkRegistry {
  const others = added.filter(({ name }) => builtInNetworks.named(name) === undefined);
  return others.length === 0 ? builtInNetworks : createNetworkRegistry([...builtInNetworks.all, ...others]);
}

/** The built-in network that a caller of the given protocol version means by `spelling`; undefined when unknown. */
export function findNetwork(spelling: string, x402Version: 1 | 2): Network | undefined {
  return builtInNetworks.find(spelling, x402Version);
}

/** How a network is spelled in the given protocol version: `base` in v1, `eip155:8453` in v2. */
export function formatNetwork(
  network: Pick<Network, "name"> & { caip2: string },
  x402Version: 1 | 2,
): string {
  return x402Version === 1 ? network.name : network.caip2;
}
