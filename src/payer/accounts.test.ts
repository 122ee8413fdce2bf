import { getAddress, keccak256, stringToHex, toHex } from "viem";
import { mnemonicToAccount, privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import {
  delegateAddress,
  harnessAccounts,
  isPublishedKey,
  publishedKeys,
  revertingDelegateAddress,
  usdcImplementationAddress,
  usdcProxyAdmin,
  usdcSignaturesAddress,
} from "./accounts.ts";
import { localTokens } from "./local-chains.ts";
import { testPayers } from "./test-payers.ts";

const labelHash = (name: string) => keccak256(stringToHex(`x402-facilitator-kit harness: ${name}`));

describe("the harness accounts", () => {
  it.each(Object.entries(harnessAccounts))(
    "%s has the key of its label, and its address",
    (name, account) => {
      expect(account.privateKey).toBe(labelHash(name));
      expect(account.address).toBe(privateKeyToAddress(account.privateKey));
    },
  );

  it.each([
    ["delegate", delegateAddress],
    ["reverting delegate", revertingDelegateAddress],
    ["USDC implementation", usdcImplementationAddress],
    ["USDC signature library", usdcSignaturesAddress],
    ["USDC proxy admin", usdcProxyAdmin],
    ...Object.entries(localTokens).map(([name, { address }]): [string, string] => [`${name} token`, address]),
  ])("the %s stands at the address of its label", (name, address) => {
    expect(address).toBe(getAddress(`0x${labelHash(name).slice(26)}`));
  });
});

describe("published keys", () => {
  it("hold every key of the test payers and of the harness", () => {
    const accounts = [...Object.values(testPayers), ...Object.values(harnessAccounts)];
    for (const { privateKey } of accounts) expect(publishedKeys).toContain(privateKey);
    expect(new Set(publishedKeys).size).toBe(publishedKeys.length);
  });

  it("hold the ten keys of the development mnemonic of anvil and hardhat", () => {
    const mnemonic = "test test test test test test test test test test test junk";
    for (let addressIndex = 0; addressIndex < 10; addressIndex++) {
      const key = mnemonicToAccount(mnemonic, { addressIndex }).getHdKey().privateKey;
      expect(publishedKeys).toContain(key === null ? "no key" : toHex(key));
    }
  });

  it("are recognised however they are spelled", () => {
    const { privateKey } = harnessAccounts.operator;
    expect(isPublishedKey(privateKey)).toBe(true);
    expect(isPublishedKey(privateKey.toUpperCase())).toBe(true);
    expect(isPublishedKey(` ${privateKey.slice(2)}\n`)).toBe(true);
    expect(isPublishedKey(keccak256(privateKey))).toBe(false);
  });
});
