import type { Address, Hex } from "./hex.ts";
import { encodeBytes, encodeList, encodeNumber } from "./rlp.ts";

/* Writes transactions of type 2 (EIP-1559): see `signed-transaction.ts`, which reads them. */

/** A transaction of type 2 without an access list before it is signed. Fees are in wei per gas. */
export type TransactionFields = {
  chainId: number;
  /** The account's own count of transactions. */
  nonce: number;
  maxPriorityFeePerGas: bigint;
  maxFeePerGas: bigint;
  gas: bigint;
  to: Address;
  data: Hex;
};

/** A signature as a transaction carries it, in digits without 0x. */
export type TransactionSignature = { r: string; s: string; yParity: 0 | 1 };

/** The bytes that are signed; with a signature, those that are broadcast. It carries no coins unless a value in wei is given. */
export function encodeTransaction(
  transaction: TransactionFields & { value?: bigint },
  signature?: TransactionSignature,
): Hex {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value = 0n, data } = transaction;
  const numbers = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(encodeNumber).join("");
  const noAccessList = encodeList("");
  const body = `${numbers}${encodeBytes(to.slice(2))}${encodeNumber(value)}${encodeBytes(data.slice(2))}${noAccessList}`;
  if (signature === undefined) return `0x02${encodeList(body)}`;
  const { r, s, yParity } = signature;
  return `0x02${encodeList(`${body}${encodeNumber(yParity)}${encodeWord(r)}${encodeWord(s)}`)}`;
}

/** A number of up to 32 bytes, which are given: leading zeros are not written. */
function encodeWord(digits: string): string {
  return encodeNumber(BigInt(`0x${digits}`));
}
