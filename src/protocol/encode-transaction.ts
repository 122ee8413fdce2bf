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

/** The bytes that are signed; with a signature, those that are broadcast. */
export function encodeTransaction(
  transaction: TransactionFields & { value?: bigint },
  signature?: TransactionSignature,
): Hex {
  return encodeWhole(encodeFields(transaction), signature);
}

/** The fields as both forms of a transaction have them. It carries no coins unless a value in wei is given. */
export function encodeFields(transaction: TransactionFields & { value?: bigint }): string {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value = 0n, data } = transaction;
  const numbers = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(encodeNumber).join("");
  const noAccessList = encodeList("");
  return `${numbers}${encodeBytes(to.slice(2))}${encodeNumber(value)}${encodeBytes(data.slice(2))}${noAccessList}`;
}

/** Encoded fields as {@link encodeTransaction} gives them. */
export function encodeWhole(fields: string, signature?: TransactionSignature): Hex {
  if (signature === undefined) return `0x02${encodeList(fields)}`;
  const { r, s, yParity } = signature;
  return `0x02${encodeList(`${fields}${encodeNumber(yParity)}${encodeWord(r)}${encodeWord(s)}`)}`;
}

/** A number of up to 32 bytes, which are given: leading zeros are not written. */
function encodeWord(digits: string): string {
  return encodeNumber(BigInt(`0x${digits}`));
}
