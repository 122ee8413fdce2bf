import { mock1271WalletBytecode } from "../contracts/mock1271Wallet.ts";
import { mockFickleWalletBytecode } from "../contracts/mockFickleWallet.ts";
import { mockUsdcBytecode } from "../contracts/mockUsdc.ts";
import { x402FacilitatorBytecode } from "../contracts/x402Facilitator.ts";
import { type Address, addressWord, type Hex, uintWord } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { harnessAccounts } from "./accounts.ts";

/*
 * Creation code with its constructor arguments. Encoded by hand: viem's encoder is right but takes 100 ms to import,
 * a tenth of the whole start-up. Tests hold it against viem and the generated ABI.
 */

/** Seconds before a transfer of the admin role can be accepted: two days, as a deployment would have it. */
const adminDelay = 172_800n;

/** `X402Facilitator(adminDelay, admin, operators, recoverer, pauser)` with the harness's own accounts. */
export function facilitatorInitCode(): Hex {
  const { admin, operator, recoverer, pauser } = harnessAccounts;
  const operators = 5n * 32n;
  return `${x402FacilitatorBytecode}${uintWord(adminDelay)}${addressWord(admin.address)}${uintWord(operators)}${addressWord(recoverer.address)}${addressWord(pauser.address)}${uintWord(1n)}${addressWord(operator.address)}`;
}

/** `MockUSDC(name, symbol, version, owner)`, owned by the treasury. */
export function mockUsdcInitCode({ name, version }: Pick<Asset, "name" | "version">): Hex {
  const texts = [name, "USDC", version].map(encodeText);
  let position = 4 * 32;
  const offsets = texts.map((text) => {
    const start = position;
    position += text.length / 2;
    return uintWord(BigInt(start));
  });
  return `${mockUsdcBytecode}${offsets.join("")}${addressWord(harnessAccounts.treasury.address)}${texts.join("")}`;
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
  const bytes = Buffer.from(text, "utf8");
  const digits = bytes.toString("hex");
  return `${uintWord(BigInt(bytes.length))}${digits.padEnd(Math.ceil(digits.length / 64) * 64, "0")}`;
}
