import type { Address } from "../protocol/hex.ts";

/** Chains that payers sign for by mistake, since examples, tools and wallets name them; the likeliest first. */
export const wellKnownChains: ReadonlyMap<number, string> = new Map([
  [1, "Ethereum"],
  [31_337, "anvil or Hardhat"],
  [11_155_111, "Sepolia"],
  [43_113, "Avalanche Fuji"],
  [80_002, "Polygon Amoy"],
  [42_161, "Arbitrum One"],
  [421_614, "Arbitrum Sepolia"],
  [43_114, "Avalanche"],
  [56, "BNB Smart Chain"],
  [1_337, "Ganache or Geth --dev"],
  [5, "Goerli"],
  [84_531, "Base Goerli"],
  [420, "Optimism Goerli"],
  [80_001, "Polygon Mumbai"],
  [17_000, "Holesky"],
  [560_048, "Hoodi"],
  [97, "BNB testnet"],
  [100, "Gnosis"],
  [324, "zkSync Era"],
  [8_217, "Kaia"],
  [1_329, "Sei"],
  [1_328, "Sei testnet"],
  [2_741, "Abstract"],
  [11_124, "Abstract testnet"],
  [4_689, "IoTeX"],
  [42_220, "Celo"],
  [59_144, "Linea"],
  [534_352, "Scroll"],
  [7_777_777, "Zora"],
  [130, "Unichain"],
  [480, "World Chain"],
  [146, "Sonic"],
]);

/** A token that is taken for a network's USDC, by its chain. */
type SiblingToken = { chainId: number; symbol: string; address: Address };

/** Bridged USDC, and other stable tokens beside USDC. */
export const siblingTokens: readonly SiblingToken[] = [
  { chainId: 8_453, symbol: "USDbC", address: "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA" },
  { chainId: 8_453, symbol: "EURC", address: "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42" },
  { chainId: 84_532, symbol: "EURC", address: "0x808456652fdb597867f38412077A9182bf77359F" },
  { chainId: 10, symbol: "USDC.e", address: "0x7F5c764cBc14f9669B88837ca1490cCa17c31607" },
  { chainId: 10, symbol: "USDT", address: "0x94b008aA00579c1307B0EF2c499aD98a8ce58e58" },
  { chainId: 137, symbol: "USDC.e", address: "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174" },
  { chainId: 137, symbol: "USDT", address: "0xc2132D05D31c914a87C6611C10748AEb04B58e8F" },
  { chainId: 1, symbol: "USDC", address: "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48" },
  { chainId: 11_155_111, symbol: "USDC", address: "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238" },
];
