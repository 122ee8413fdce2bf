import { getAddress, getCreate2Address, keccak256, stringToHex } from "viem";
import { describe, expect, it } from "vitest";
import { harnessAccounts } from "../../payer/accounts.ts";
import { localContracts, localTokens } from "../../payer/local-chains.ts";
import { testPayers } from "../../payer/test-payers.ts";
import { create2Deployer } from "../../protocol/create2.ts";
import { networks } from "../../protocol/networks.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { planLocalDeployment, resolveFacilitatorContracts } from "./addresses.ts";

const other = "0xabcdef7890123456789012345678901234567890";

function problemsOf(configured: Parameters<typeof resolveFacilitatorContracts>[0]): string[] {
  try {
    resolveFacilitatorContracts(configured);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map(({ name, problem }) => `${name} ${problem}`);
  }
}

describe("the addresses of the facilitator contract", () => {
  it.each(["mainnet", "testnet"] as const)("default to where CREATE2 puts it: %s", (tier) => {
    const salt = keccak256(stringToHex(`x402-facilitator-kit facilitator: ${tier}`));
    const expected = getCreate2Address({
      from: create2Deployer,
      salt,
      bytecode: planLocalDeployment("mainnet").initCode,
    });
    expect(localContracts[tier]).toBe(expected);
    expect(resolveFacilitatorContracts()[tier]).toBe(expected);
    expect(resolveFacilitatorContracts({ mainnet: undefined })[tier]).toBe(expected);
  });

  it("are the configured ones, each for itself", () => {
    expect(resolveFacilitatorContracts({ testnet: other })).toEqual({
      mainnet: localContracts.mainnet,
      testnet: getAddress(other),
    });
  });

  it("may be in lower or upper case; in mixed case the checksum must be right", () => {
    const upper = other.toUpperCase().replace("0X", "0x");
    for (const mainnet of [other, upper, getAddress(other)]) {
      expect(resolveFacilitatorContracts({ mainnet }).mainnet).toBe(getAddress(other));
    }
    expect(problemsOf({ mainnet: other.replace("a", "A") })).toEqual([
      "FACILITATOR_CONTRACT_MAINNET has a wrong checksum (EIP-55): a digit may be mistyped",
    ]);
  });

  it("reports everything that is wrong with them at once", () => {
    expect(problemsOf({ mainnet: "0x1234", testnet: `0x${"0".repeat(40)}` })).toMatchInlineSnapshot(`
      [
        "FACILITATOR_CONTRACT_MAINNET is not an address: 0x and 40 hexadecimal digits",
        "FACILITATOR_CONTRACT_TESTNET is the zero address",
      ]
    `);
  });

  it.each([
    ["an asset", networks.polygon.usdc.address.toLowerCase()],
    ["a token", localTokens.plain.address],
    ["a payer", testPayers.smartWallet.address],
    ["an operator", harnessAccounts.operator.address],
    ["a precompiled contract", "0x0000000000000000000000000000000000000100"],
    ["a system contract", "0x4200000000000000000000000000000000000006"],
    ["the CREATE2 deployer", getAddress(create2Deployer)],
  ])("cannot be that of %s", (_what, address) => {
    expect(problemsOf({ mainnet: address })).toHaveLength(1);
  });

  it("says what stands at the address", () => {
    const [usdc, payer] = [networks.base.usdc.address, testPayers.empty.address];
    expect(problemsOf({ mainnet: usdc, testnet: payer })).toMatchInlineSnapshot(`
      [
        "FACILITATOR_CONTRACT_MAINNET is the address of the asset "USD Coin"",
        "FACILITATOR_CONTRACT_TESTNET is the address of the test payer empty",
      ]
    `);
  });

  it("cannot be the same for mainnets and testnets", () => {
    expect(
      problemsOf({ mainnet: other, testnet: other.toUpperCase().replace("0X", "0x") }),
    ).toMatchInlineSnapshot(`
      [
        "FACILITATOR_CONTRACT_TESTNET is the same address as FACILITATOR_CONTRACT_MAINNET; mainnets and testnets need one each",
      ]
    `);
    expect(problemsOf({ mainnet: localContracts.testnet })).toMatchInlineSnapshot(`
      [
        "FACILITATOR_CONTRACT_MAINNET is the same address as FACILITATOR_CONTRACT_TESTNET; mainnets and testnets need one each",
      ]
    `);
  });
});
