import { encodeDeployData, encodeFunctionData } from "viem";
import { expect, it } from "vitest";
import { mock1271WalletAbi, mock1271WalletBytecode } from "../contracts/mock1271Wallet.ts";
import { mockFickleWalletAbi, mockFickleWalletBytecode } from "../contracts/mockFickleWallet.ts";
import { mockUsdcAbi } from "../contracts/mockUsdc.ts";
import { mockUsdcProxyAbi, mockUsdcProxyBytecode } from "../contracts/mockUsdcProxy.ts";
import { harnessAccounts, usdcImplementationAddress, usdcProxyAdmin } from "./accounts.ts";
import { fickleWalletInitCode, mockUsdcInitCode } from "./init-code.ts";
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

it.each([
  ["wallet", walletInitCode, mock1271WalletAbi, mock1271WalletBytecode],
  ["fickle wallet", fickleWalletInitCode, mockFickleWalletAbi, mockFickleWalletBytecode],
])("encodes the %s's constructor as viem does", (_name, initCode, abi, bytecode) => {
  expect(initCode(operator.address)).toBe(encodeDeployData({ abi, bytecode, args: [operator.address] }));
});
