import { privateKeyToAccount } from "viem/accounts";
import { KitError } from "../errors/base.ts";
import { type Address, type Hex, keccak256 } from "../protocol/hex.ts";
import type { Fees } from "./transaction.ts";

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

/** Whoever holds an operator's key: this process, or a service elsewhere. */
export type Signer = {
  readonly address: Address;
  signTransaction(transaction: UnsignedTransaction): Promise<SignedTransaction>;
};

/**
 * A signer whose key is in this process.
 *
 * @throws KitError when the key is none. The error has no cause: libraries quote the key in theirs.
 */
export function createLocalSigner(privateKey: Hex): Signer {
  const account = readKey(privateKey);
  return {
    address: account.address,
    async signTransaction(transaction) {
      const { maxFeePerGas, maxPriorityFeePerGas } = transaction;
      const raw = await account.signTransaction({ type: "eip1559", value: 0n, ...transaction });
      return { raw, hash: keccak256(raw), maxFeePerGas, maxPriorityFeePerGas };
    },
  };
}

function readKey(privateKey: Hex): ReturnType<typeof privateKeyToAccount> {
  try {
    return privateKeyToAccount(privateKey);
  } catch {
    throw new KitError(
      "An operator's private key must be 32 bytes of hex after 0x, above zero and below the order of secp256k1",
    );
  }
}
