/**
 * Writes networks/x402-defaults.json: the default chains of the public x402 packages as a network file. Addresses and
 * domains come from the installed @x402/evm; names, coins and block times from viem. With `--check` it writes nothing,
 * and fails if the file is stale.
 */
import { DEFAULT_ASSETS } from "@x402/evm";
import { EVM_NETWORK_CHAIN_ID_MAP } from "@x402/evm/v1";
import * as viemChains from "viem/chains";
import { type NetworkData, readNetworkData } from "../src/config/network-file.ts";
import { builtInNetworks } from "../src/protocol/networks.ts";
import { writeGenerated } from "./write-generated.ts";

const chains = Object.values(viemChains);
const v1Names = new Map<number, string>(
  Object.entries(EVM_NETWORK_CHAIN_ID_MAP).map(([name, chainId]) => [Number(chainId), name]),
);

/** Fee caps should be reviewed before real money is settled, as the guide says. */
const usual = {
  mainnet: { confirmations: 12, maxFeeGwei: "100" },
  testnet: { confirmations: 1, maxFeeGwei: "100" },
} as const;

const described = Object.entries(DEFAULT_ASSETS).flatMap(([caip2, [token]]): NetworkData[] => {
  const chainId = Number(caip2.slice("eip155:".length));
  // A network has one token that is paid by EIP-3009; Permit2 comes with it.
  if (builtInNetworks.ofChain(chainId) !== undefined || token === undefined) return [];
  if (token.assetTransferMethod !== undefined) return [];
  const chain = chains.find(({ id }) => id === chainId);
  if (chain === undefined) return [];
  const tier = chain.testnet === true ? "testnet" : "mainnet";
  const { name, version, decimals } = token;
  const explorer = chain.blockExplorers?.default.url.replace(/\/$/, "");
  return [
    {
      name: v1Names.get(chainId) ?? kebab(chain.name),
      caip2,
      tier,
      token: { address: token.asset, name, version, decimals },
      ...usual[tier],
      blockTimeMs: Math.max(chain.blockTime ?? 2_000, 50),
      nativeCoin: chain.nativeCurrency.symbol,
      ...(explorer !== undefined && { explorer }),
    },
  ];
});

function kebab(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}

readNetworkData(described);
writeGenerated([["networks/x402-defaults.json", `${JSON.stringify(described, null, 2)}\n`]]);
