import type { Address, Hex } from "../../protocol/hex.ts";
import type { TransactionFields } from "../../protocol/signed-transaction.ts";
import type { Fees } from "../fees.ts";

/** A transaction of an operator before it is signed; `nonce` is the operator's txNonce. It carries no value. */
export type UnsignedTransaction = TransactionFields;

/** Signs with a key of this process, and sends coins too. */
export type CoinSigner = Signer & {
  /** @param transaction `value` is in wei */
  signTransfer(transaction: TransactionFields & { value: bigint }): Promise<SignedTransaction>;
};

/** A transaction as it can be broadcast, with what it offers per gas, which a replacement must exceed. */
export type SignedTransaction = Fees & { raw: Hex; hash: Hex };

/** Signs with an operator's key, which this process holds, or a service elsewhere. */
export type Signer = {
  readonly address: Address;
  signTransaction(transaction: UnsignedTransaction): Promise<SignedTransaction>;
};

/**
 * Reads a signed transaction of type 2 (EIP-1559), which is one of ours: by hand, since viem's import takes 150 ms of
 * every start.
 */
export function readTransaction(raw: Hex): { txNonce: number; gas: bigint; data: Hex } {
  // 0x02, and the list; in it chain id, txNonce, tip, fee, gas limit, to, value, data.
  let at = readItem(raw, 4).start;
  const items = Array.from({ length: 8 }, () => {
    const { start, end } = readItem(raw, at);
    at = end;
    return raw.slice(start, end);
  });
  const number = (index: number) => `0x${items[index] || "0"}`;
  return { txNonce: Number(number(1)), gas: BigInt(number(4)), data: `0x${items[7]}` };
}

/** The most that a signed transaction may cost, in wei. */
export function mostCost({ raw, maxFeePerGas }: { raw: Hex; maxFeePerGas: bigint }): bigint {
  return readTransaction(raw).gas * maxFeePerGas;
}

/** Where the content of an RLP item or list begins and ends, which itself begins at this character. */
function readItem(raw: Hex, at: number): { start: number; end: number } {
  const first = Number.parseInt(raw.slice(at, at + 2), 16);
  if (first < 0x80) return { start: at, end: at + 2 };
  // Lists differ from bytes in their first byte alone.
  const length = first < 0xc0 ? first - 0x80 : first - 0xc0;
  if (length <= 55) return { start: at + 2, end: at + 2 + 2 * length };
  const start = at + 2 + 2 * (length - 55);
  return { start, end: start + 2 * Number.parseInt(raw.slice(at + 2, start), 16) };
}
