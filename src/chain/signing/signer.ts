import type { Address, Hex } from "../../protocol/hex.ts";
import { locateItem, type TransactionFields } from "../../protocol/signed-transaction.ts";
import type { Fees } from "../fees.ts";

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
  /** @param transaction carries no value; `nonce` is the operator's txNonce */
  signTransaction(transaction: TransactionFields): Promise<SignedTransaction>;
};

/**
 * Reads a signed transaction of type 2 (EIP-1559), which is one of ours: by hand, since viem's import takes 150 ms of
 * every start.
 */
export function readTransaction(raw: Hex): { txNonce: number; gas: bigint; data: Hex } {
  // 0x02, and the list; in it chain id, txNonce, tip, fee, gas limit, to, value, data.
  let at = locateItem(raw, 4).start;
  const items = Array.from({ length: 8 }, () => {
    const { start, end } = locateItem(raw, at);
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
