import { mockUsdcProxyBytecode } from "../contracts/mockUsdc.ts";
import { mockFickleWalletBytecode } from "../contracts/mockWallets.ts";
import {
  type Address,
  addressWord,
  byteWords,
  type Hex,
  keccak256Text,
  toHex,
  uintWord,
} from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { unitsOf } from "../protocol/token-units.ts";
import { harnessAccounts, usdcImplementationAddress, usdcProxyAdmin } from "./accounts.ts";

/*
 * Creation code with constructor arguments. Encoded by hand, because importing viem's encoder takes 100 ms, a tenth of the
 * whole start-up. Tests compare it with viem and the generated ABI.
 */

const initializeSelector = keccak256Text("initialize(string,string,string,uint8,address)").slice(2, 10);

/**
 * `MockUSDCProxy(implementation, admin, initialization)`, which calls `initialize(name, symbol, version, decimals, issuer)`
 * with the treasury as the issuer. The implementation and its library must be deployed first.
 */
export function mockUsdcInitCode(asset: Pick<Asset, "name" | "version" | "decimals" | "symbol">): Hex {
  const { name, version, decimals } = asset;
  const texts = [name, unitsOf(asset).symbol, version].map((text) =>
    byteWords(toHex(Buffer.from(text, "utf8"))),
  );
  let position = 5 * 32;
  const offsets = texts.map((text) => {
    const start = position;
    position += text.length / 2;
    return uintWord(BigInt(start));
  });
  const issuer = addressWord(harnessAccounts.treasury.address);
  const initialization: Hex = `0x${initializeSelector}${offsets.join("")}${uintWord(BigInt(decimals))}${issuer}${texts.join("")}`;
  const initializationOffset = uintWord(3n * 32n);
  return `${mockUsdcProxyBytecode}${addressWord(usdcImplementationAddress)}${addressWord(usdcProxyAdmin)}${initializationOffset}${byteWords(initialization)}`;
}

/** The constructor that all tokens besides USDC share: `(name, symbol, decimals)`. */
export function tokenInitCode(bytecode: Hex, asset: Pick<Asset, "name" | "decimals" | "symbol">): Hex {
  const [name, symbol] = [asset.name, unitsOf(asset).symbol].map((text) =>
    byteWords(toHex(Buffer.from(text, "utf8"))),
  ) as [string, string];
  const start = 3 * 32;
  const places = [start, start + name.length / 2, asset.decimals].map((word) => uintWord(BigInt(word)));
  return `${bytecode}${places.join("")}${name}${symbol}`;
}

/** `MockFickleWallet(owner)`. */
export function fickleWalletInitCode(owner: Address): Hex {
  return `${mockFickleWalletBytecode}${addressWord(owner)}`;
}
