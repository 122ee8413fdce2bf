import { mock1271WalletBytecode } from "../contracts/mock1271Wallet.ts";
import { mockFickleWalletBytecode } from "../contracts/mockFickleWallet.ts";
import { mockUsdcProxyBytecode } from "../contracts/mockUsdcProxy.ts";
import { type Address, addressWord, type Hex, keccak256Text, uintWord } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { harnessAccounts, usdcImplementationAddress, usdcProxyAdmin } from "./accounts.ts";

/*
 * Creation code with its constructor arguments. Encoded by hand: viem's encoder is right but takes 100 ms to import,
 * a tenth of the whole start-up. Tests hold it against viem and the generated ABI.
 */

const initializeSelector = keccak256Text("initialize(string,string,string,uint8,address)").slice(0, 10);

/**
 * `MockUSDCProxy(implementation, admin, initialization)`, which calls `initialize(name, symbol, version, decimals, issuer)`: the
 * treasury is the issuer. The implementation and its library must be in place.
 */
export function mockUsdcInitCode({
  name,
  version,
  decimals,
}: Pick<Asset, "name" | "version" | "decimals">): Hex {
  const texts = [name, "USDC", version].map(encodeText);
  let position = 5 * 32;
  const offsets = texts.map((text) => {
    const start = position;
    position += text.length / 2;
    return uintWord(BigInt(start));
  });
  const issuer = addressWord(harnessAccounts.treasury.address);
  const initialization = `${initializeSelector.slice(2)}${offsets.join("")}${uintWord(BigInt(decimals))}${issuer}${texts.join("")}`;
  const initializationOffset = uintWord(3n * 32n);
  return `${mockUsdcProxyBytecode}${addressWord(usdcImplementationAddress)}${addressWord(usdcProxyAdmin)}${initializationOffset}${encodeBytes(initialization)}`;
}

/** `Mock1271Wallet(owner)`. */
export function walletInitCode(owner: Address): Hex {
  return `${mock1271WalletBytecode}${addressWord(owner)}`;
}

/** `MockFickleWallet(owner)`. */
export function fickleWalletInitCode(owner: Address): Hex {
  return `${mockFickleWalletBytecode}${addressWord(owner)}`;
}

function encodeText(text: string): string {
  return encodeBytes(Buffer.from(text, "utf8").toString("hex"));
}

/** Length, and bytes filled up to whole words; digits without 0x. */
function encodeBytes(digits: string): string {
  const length = uintWord(BigInt(digits.length / 2));
  return `${length}${digits.padEnd(Math.ceil(digits.length / 64) * 64, "0")}`;
}
