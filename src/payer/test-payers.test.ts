import { readFileSync } from "node:fs";
import { concat, getAddress, getCreate2Address, keccak256, pad, stringToHex } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { mock1271WalletBytecode } from "../contracts/mockWallets.ts";
import { invalidReasons } from "../protocol/catalogue.ts";
import { create2Deployer } from "../protocol/create2.ts";
import { type TestPayer, testPayers } from "./test-payers.ts";
import { undeployedWalletSalt } from "./undeployed-wallet.ts";

const labelHash = (label: string) => keccak256(stringToHex(label));
const cast = Object.entries<TestPayer>(testPayers);

describe("the test payers", () => {
  it.each(cast)("%s has the key that its label gives", (name, { privateKey }) => {
    expect(privateKey).toBe(labelHash(`x402-facilitator-kit test payer: ${name}`));
  });

  it.each(cast)(
    "%s has the address of its key, as payer or as owner",
    (_name, { address, owner, privateKey }) => {
      expect(owner ?? address).toBe(privateKeyToAddress(privateKey));
    },
  );

  it.each(["smartWallet", "gasBurner", "fickle"] as const)(
    "%s stands at the address that its label gives",
    (name) => {
      const hash = labelHash(`x402-facilitator-kit test payer: ${name}, wallet`);
      expect(testPayers[name].address).toBe(getAddress(`0x${hash.slice(26)}`));
    },
  );

  it("undeployedWallet is where the CREATE2 deployer would put the wallet of its owner", () => {
    const { address, owner } = testPayers.undeployedWallet;
    const bytecode = concat([mock1271WalletBytecode, pad(owner)]);
    expect(address).toBe(getCreate2Address({ from: create2Deployer, salt: undeployedWalletSalt, bytecode }));
  });

  it.each(cast)(
    "%s stands for an outcome that verify can answer",
    (_name, { outcome, settleOutcome, standsFor }) => {
      expect(["success", ...invalidReasons]).toContain(outcome);
      if (settleOutcome !== undefined) expect(invalidReasons).toContain(settleOutcome);
      expect(standsFor).toMatch(/^[A-Z][^.]*\.$/);
    },
  );

  it("are all different", () => {
    expect(new Set(cast.map(([, { address }]) => address)).size).toBe(cast.length);
  });

  it("can be imported by a browser: nothing is imported at run time", () => {
    const source = readFileSync(new URL("./test-payers.ts", import.meta.url), "utf8");
    const imports = source.match(/^import .*$/gm) ?? [];
    expect(imports.filter((line) => !line.startsWith("import type "))).toEqual([]);
  });
});
