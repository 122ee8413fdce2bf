import { privateKeyToAccount } from "viem/accounts";
import { KitError } from "../../errors.ts";
import { type Hex, keccak256 } from "../../protocol/hex.ts";
import type { Signer } from "./signer.ts";

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
