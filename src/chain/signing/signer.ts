import type { Address, Hex } from "../../protocol/hex.ts";
import type { Fees } from "../fees.ts";

/** A transaction of an operator before it is signed. It carries no value. */
export type UnsignedTransaction = Fees & {
  chainId: number;
  /** The operator's txNonce. */
  nonce: number;
  to: Address;
  data: Hex;
  gas: bigint;
};

/** A transaction as it can be broadcast, with what it offers per gas, which a replacement must exceed. */
export type SignedTransaction = Fees & { raw: Hex; hash: Hex };

/** Signs with an operator's key, which this process holds, or a service elsewhere. */
export type Signer = {
  readonly address: Address;
  signTransaction(transaction: UnsignedTransaction): Promise<SignedTransaction>;
};
