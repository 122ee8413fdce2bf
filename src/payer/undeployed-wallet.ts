import { mock1271WalletBytecode } from "../contracts/mockWallets.ts";
import { create2Deployer } from "../protocol/create2.ts";
import { type Address, addressWord, type Hex } from "../protocol/hex.ts";
import { wrapErc6492 } from "../protocol/signed-payment.ts";
import { testPayers } from "./test-payers.ts";

/** The CREATE2 salt of the undeployed wallet. */
export const undeployedWalletSalt: Hex = `0x${"00".repeat(32)}`;

/** The creation code of `Mock1271Wallet(owner)`, with its argument. */
export function walletInitCode(owner: Address): Hex {
  return `${mock1271WalletBytecode}${addressWord(owner)}`;
}

/** Wraps a signature by the owner of the test payer `undeployedWallet` with the wallet's deployment (ERC-6492). */
export function wrapForUndeployed(signature: Hex): Hex {
  const initCode = walletInitCode(testPayers.undeployedWallet.owner);
  return wrapErc6492(create2Deployer, `${undeployedWalletSalt}${initCode.slice(2)}`, signature);
}
