import type { Address, Hex } from "./hex.ts";
import { encodeBytes, encodeList, encodeNumber } from "./rlp.ts";

/* Writes transactions of type 2 (EIP-1559); `signed-transaction.ts` reads them. */

/** An unsigned type 2 transaction without an access list. Fees are in wei per gas. */
export type TransactionFields = {
  chainId: number;
  /** The account's transaction count. */
  nonce: number;
  maxPriorityFeePerGas: bigint;
  maxFeePerGas: bigint;
  gas: bigint;
  to: Address;
  data: Hex;
};

/** The signature of a transaction; r and s are hexadecimal digits without 0x. */
export type TransactionSignature = { r: string; s: string; yParity: 0 | 1 };

/** Encodes the bytes to sign, or with a signature, the bytes to broadcast. */
export function encodeTransaction(
  transaction: TransactionFields & { value?: bigint },
  signature?: TransactionSignature,
): Hex {
  return encodeWhole(encodeFields(transaction), signature);
}

/** Encodes the fields that both forms of a transaction share. `value` is in wei, 0 by default. */
export function encodeFields(transaction: TransactionFields & { value?: bigint }): string {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, value = 0n, data } = transaction;
  const numbers = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(encodeNumber).join("");
  const noAccessList = encodeList("");
  return `${numbers}${encodeBytes(to.slice(2))}${encodeNumber(value)}${encodeBytes(data.slice(2))}${noAccessList}`;
}

/** Completes encoded fields as {@link encodeTransaction} does. */
export function encodeWhole(fields: string, signature?: TransactionSignature): Hex {
  if (signature === undefined) return `0x02${encodeList(fields)}`;
  const { r, s, yParity } = signature;
  return `0x02${encodeList(`${fields}${encodeNumber(yParity)}${encodeWord(r)}${encodeWord(s)}`)}`;
}

/** Encodes a number given as 32 bytes, without its leading zeros. */
function encodeWord(digits: string): string {
  return encodeNumber(BigInt(`0x${digits}`));
}
