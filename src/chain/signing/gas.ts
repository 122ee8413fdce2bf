import type { Address, Hex } from "../../protocol/hex.ts";

/** A transaction that does nothing; twice as much where the account itself has code (EIP-7702). */
const noopGas = 42_000n;

/** A transaction of an account to itself that does nothing but take a txNonce. */
export function noopTransaction(account: Address): { to: Address; data: Hex; gas: bigint } {
  return { to: account, data: "0x", gas: noopGas };
}

/** Per byte of calldata, by the floor price of EIP-7623, which is above what is charged otherwise. */
const gasPerZeroByte = 10n;
export const gasPerByte = 40n;

const zeroDigit = "0".charCodeAt(0);

/** What the calldata of a transaction costs, in gas. */
export function calldataGas(data: Hex): bigint {
  let zeros = 0;
  for (let index = 2; index < data.length; index += 2) {
    if (data.charCodeAt(index) === zeroDigit && data.charCodeAt(index + 1) === zeroDigit) zeros++;
  }
  const others = data.length / 2 - 1 - zeros;
  return BigInt(zeros) * gasPerZeroByte + BigInt(others) * gasPerByte;
}
