import { encodeDeployData, encodeFunctionData, parseAbi } from "viem";
import { expect, it } from "vitest";
import { mockErc20Bytecode } from "../contracts/mockTokens.ts";
import { mockUsdcAbi, mockUsdcProxyAbi, mockUsdcProxyBytecode } from "../contracts/mockUsdc.ts";
import {
  mock1271WalletAbi,
  mock1271WalletBytecode,
  mockFickleWalletAbi,
  mockFickleWalletBytecode,
} from "../contracts/mockWallets.ts";
import { unitsOf } from "../protocol/token-units.ts";
import { harnessAccounts, usdcImplementationAddress, usdcProxyAdmin } from "./accounts.ts";
import { fickleWalletInitCode, mockUsdcInitCode, tokenInitCode } from "./init-code.ts";
import { localTokens } from "./local-chains.ts";
import { walletInitCode } from "./undeployed-wallet.ts";

const { operator, treasury } = harnessAccounts;

it.each([
  ["USD Coin", undefined, "2", 6, "USDC"],
  ["", undefined, "1", 0, ""],
  ["A token with a name that is longer than one word: 32 bytes or more", "LONG", "2.1", 18, "LONG"],
  ["Zweiunddreißig Bytes mit Umlaut", undefined, "2", 36, "Zweiunddreißig Bytes mit Umlaut"],
])(
  "encodes the token's constructor, and the call in it, as viem does: %s",
  (name, symbol, version, decimals, shown) => {
    expect(mockUsdcInitCode({ name, version, decimals, symbol })).toBe(
      encodeDeployData({
        abi: mockUsdcProxyAbi,
        bytecode: mockUsdcProxyBytecode,
        args: [
          usdcImplementationAddress,
          usdcProxyAdmin,
          encodeFunctionData({
            abi: mockUsdcAbi,
            functionName: "initialize",
            args: [name, shown, version, decimals, treasury.address],
          }),
        ],
      }),
    );
  },
);

it.each(Object.values(localTokens))("encodes the constructor of $name as viem does", (asset) => {
  const abi = parseAbi(["constructor(string name, string symbol, uint8 decimals)"]);
  const args = [asset.name, unitsOf(asset).symbol, asset.decimals] as const;
  expect(tokenInitCode(mockErc20Bytecode, asset)).toBe(
    encodeDeployData({ abi, bytecode: mockErc20Bytecode, args }),
  );
});

it.each([
  ["wallet", walletInitCode, mock1271WalletAbi, mock1271WalletBytecode],
  ["fickle wallet", fickleWalletInitCode, mockFickleWalletAbi, mockFickleWalletBytecode],
])("encodes the %s's constructor as viem does", (_name, initCode, abi, bytecode) => {
  expect(initCode(operator.address)).toBe(encodeDeployData({ abi, bytecode, args: [operator.address] }));
});
