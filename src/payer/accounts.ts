import type { Address, Hex } from "../protocol/hex.ts";
import { harnessAddresses } from "./local-chains.ts";
import { testPayers } from "./test-payers.ts";

/** An account of the harness itself. Its key is public, so it must never hold anything of value. */
export type HarnessAccount = { address: Address; privateKey: Hex };

/** The harness's accounts on the local chains. Each key is keccak256 of `x402-facilitator-kit harness: NAME`. */
export const harnessAccounts = {
  /** Sends the settlement transactions. */
  operator: {
    address: harnessAddresses.operator,
    privateKey: "0x5ca820d2ac87cf7cfd889e8b46608c5033be2640e68c86bf0bffbee0713fc4a4",
  },
  /** Grants and revokes roles in the facilitator contract. */
  admin: {
    address: harnessAddresses.admin,
    privateKey: "0xfaab847467448475ed4c4ac396fbd6d49509b3cc2f47cd193a74bfdeec03e219",
  },
  /** Forwards value that is stranded in the contract because others have submitted its authorizations. */
  recoverer: {
    address: "0x8D1BAeDB04b3bF59B6A8bf892a420937dC0594eB",
    privateKey: "0x8da4f3c0a9fe36fbcb044adefecbf14a1ed5982261c58f9b8243b55a5f2e2674",
  },
  /** Gives payers gas money for their approvals. */
  sponsor: {
    address: "0x6855eD7c4cCF4A5954B835F75a66795D49dF0386",
    privateKey: "0x864c6a534cbc15a64039d97b0174f579a4373fce230ad7b3a6067caa71f03c5b",
  },
  /** Signs channel claims and refunds for shops that leave that to the facilitator. */
  authorizer: {
    address: harnessAddresses.authorizer,
    privateKey: "0xcb927a6fd347508113d2bf117a5e8e91efa666ebcca963e0b52bc6f209911f30",
  },
  pauser: {
    address: "0x82Eaa43e0452C9212168B97F800e85Be1596be1E",
    privateKey: "0x856ddd2f2c27be24a3c05d6e0443bda4f182598649193ffdcb9c399a0830492c",
  },
  /** Owns the mock tokens: can mint, blacklist and pause. */
  treasury: {
    address: "0xAaD7cEf11CF3afdcB27f52a92363A4b50bbd966f",
    privateKey: "0x3f15b28b6f47ba7acbf892483a13012742f2e407fad71efd5350301188317f86",
  },
  /** Receives the local organization's payments. */
  recipient: {
    address: harnessAddresses.recipient,
    privateKey: "0x595a3a4f1ae15e357ca166fe3e5e28eff221f10605a371a275b78f25439ee154",
  },
} as const satisfies Record<string, HarnessAccount>;

/** The contract that `delegated` delegates to: the last 20 bytes of keccak256 of `x402-facilitator-kit harness: delegate`. */
export const delegateAddress: Address = "0xFA5611D232C34944b1Dd7F789e5794f07bce9349";

/** The contract that `hijacked` delegates to: the same for `x402-facilitator-kit harness: reverting delegate`. */
export const revertingDelegateAddress: Address = "0x37DDC44F5A05a4D556DCEb4451a0fa22733B23bA";

/** The implementation behind the mock token's proxy: the same for `… harness: USDC implementation`. */
export const usdcImplementationAddress: Address = "0xb92Ed5F52eE0CA8469E21D6b16dC0F90d635889B";

/**
 * The library that the mock token checks signatures with: the same for `… harness: USDC signature library`. The token's
 * code is linked to it in `foundry.toml`.
 */
export const usdcSignaturesAddress: Address = "0xa6e28d70718b4cCbBA2685606744987E10D90bD9";

/** The admin of the mock token's proxy, for which no key exists: the same for `… harness: USDC proxy admin`. */
export const usdcProxyAdmin: Address = "0x53CDFAEAd2caE16718082dA8F74B8166cdD79bCE";

/** The keys of the ten accounts of Anvil and Hardhat, from the mnemonic `test test … junk`. */
const developmentKeys: readonly Hex[] = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
  "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
  "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
  "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
  "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
  "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
];

/** Every published private key, in lower case. Services with real money must refuse them. */
export const publishedKeys: readonly Hex[] = [
  ...Object.values(testPayers).map(({ privateKey }) => privateKey),
  ...Object.values(harnessAccounts).map(({ privateKey }) => privateKey),
  ...developmentKeys,
];

/** Returns true if a private key is published; upper or lower case, with or without 0x. */
export function isPublishedKey(privateKey: string): boolean {
  const digits = privateKey.trim().replace(/^0x/i, "").toLowerCase().padStart(64, "0");
  return publishedKeys.some((known) => known === `0x${digits}`);
}
