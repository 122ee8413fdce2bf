import {
  type Address,
  addressWord,
  type Hex,
  keccak256,
  keccak256Text,
  sameAddress,
  uintWord,
} from "../protocol/hex.ts";
import { builtInNetworks } from "../protocol/networks.ts";
import type { SignedDomain } from "./method.ts";

/** Chains that payers sign for by mistake because examples, tools and wallets use them; the most likely first. */
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

/** A token that is easily mistaken for a network's USDC. */
type SiblingToken = { chainId: number; symbol: string; address: Address };

/** Bridged USDC, and other stablecoins. */
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

/** The lookalike of a network's USDC at this address, if any. */
export function siblingOf(address: Address): SiblingToken | undefined {
  return siblingTokens.find((token) => sameAddress(token.address, address));
}

/** An EIP-712 domain that a payer may have signed for. Undefined fields were left out. */
export type TriedDomain = {
  name?: string | undefined;
  version?: string | undefined;
  chainId?: number | undefined;
  verifyingContract?: Address | undefined;
};

/** The fields of a domain in the order in which EIP-712 hashes them, each as one word. */
const members = {
  name: { type: "string", word: (text: string) => keccak256Text(text).slice(2) },
  version: { type: "string", word: (text: string) => keccak256Text(text).slice(2) },
  chainId: { type: "uint256", word: (id: number) => uintWord(BigInt(id)) },
  verifyingContract: { type: "address", word: addressWord },
} as const;

export function domainOf({ asset: { name, version, address }, chainId }: SignedDomain): TriedDomain {
  return { name, version, chainId, verifyingContract: address };
}

/** A cache of domain separators: the same few for most payments, but an attacker may send many made-up ones. */
const separators = new Map<string, Hex>();

/** The domain separator of a domain. Cached, because its hashes take a fifth of the time of a signature recovery. */
export function separatorOf({ name, version, chainId, verifyingContract }: TriedDomain): Hex {
  const key = JSON.stringify([name ?? null, version ?? null, chainId ?? null, verifyingContract ?? null]);
  const known = separators.get(key);
  if (known !== undefined) return known;
  const word = <T>(member: { word: (value: T) => string }, value: T | undefined) =>
    value === undefined ? "" : member.word(value);
  const given = { name, version, chainId, verifyingContract };
  const names = memberNames.filter((member) => given[member] !== undefined);
  const type = names.map((member) => `${members[member].type} ${member}`).join(",");
  const words = [
    word(members.name, name),
    word(members.version, version),
    word(members.chainId, chainId),
    word(members.verifyingContract, verifyingContract),
  ];
  const separator = keccak256(`${keccak256Text(`EIP712Domain(${type})`)}${words.join("")}`);
  if (separators.size > 999) separators.clear();
  separators.set(key, separator);
  return separator;
}

export const memberNames = ["name", "version", "chainId", "verifyingContract"] as const;

/** Formats a domain for messages. */
export function formatDomain({ asset: { name, version, address }, chainId }: SignedDomain): string {
  return `name "${name}", version "${version}", chainId ${chainId}, verifyingContract ${address}`;
}

/** Describes how a domain differs from the right one: `chainId 1 (Ethereum) instead of 8453`. */
export function formatDifference(domain: TriedDomain, right: SignedDomain): string {
  const wanted = domainOf(right);
  return memberNames
    .filter((member) => String(domain[member]).toLowerCase() !== String(wanted[member]).toLowerCase())
    .map((member) =>
      domain[member] === undefined
        ? `no ${member} instead of ${member} ${formatMember(wanted, member)}`
        : `${member} ${formatMember(domain, member)}${nameOf(domain, member)} instead of ${formatMember(wanted, member)}`,
    )
    .join(", ");
}

function formatMember(domain: TriedDomain, member: (typeof memberNames)[number]): string {
  const value = domain[member];
  return members[member].type === "string" ? JSON.stringify(value) : String(value);
}

/** The name of a chain or token, in parentheses; empty if it is unknown. */
function nameOf({ chainId, verifyingContract }: TriedDomain, member: (typeof memberNames)[number]): string {
  if (member === "chainId" && chainId !== undefined) {
    const name = chainName(chainId);
    return name === undefined ? "" : ` (${name})`;
  }
  if (member !== "verifyingContract" || verifyingContract === undefined) return "";
  const sibling = siblingOf(verifyingContract);
  if (sibling !== undefined) return ` (${sibling.symbol} on ${chainName(sibling.chainId)})`;
  const home = builtInNetworks.all.find(({ usdc }) => sameAddress(usdc.address, verifyingContract));
  return home === undefined ? "" : ` (USDC on ${home.name})`;
}

function chainName(chainId: number): string | undefined {
  return builtInNetworks.ofChain(chainId)?.name ?? wellKnownChains.get(chainId);
}
