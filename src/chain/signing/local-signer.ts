import { privateKeyToAccount } from "viem/accounts";
import { KitError } from "../../errors.ts";
import { type Hex, keccakBytes, toHex } from "../../protocol/hex.ts";
import { encodeTransaction } from "./encode-transaction.ts";
import { loadRecovery } from "./recover-public-key.ts";
import type { Signer } from "./signer.ts";

const { signDigest } = loadRecovery();

/**
 * A signer whose key is in this process.
 *
 * @throws KitError when the key is none. The error has no cause: libraries quote the key in theirs.
 */
export function createLocalSigner(privateKey: Hex): Signer {
  const account = readKey(privateKey);
  const key = Buffer.from(privateKey.slice(2), "hex");
  return {
    address: account.address,
    async signTransaction(transaction) {
      const { maxFeePerGas, maxPriorityFeePerGas } = transaction;
      const { rs, recoveryId } = signDigest(hashOf(encodeTransaction(transaction)), key);
      const signature = Buffer.from(rs).toString("hex");
      const raw = encodeTransaction(transaction, {
        r: signature.slice(0, 64),
        s: signature.slice(64),
        yParity: recoveryId,
      });
      return { raw, hash: toHex(hashOf(raw)), maxFeePerGas, maxPriorityFeePerGas };
    },
  };
}

function hashOf(bytes: Hex): Uint8Array {
  return keccakBytes(Buffer.from(bytes.slice(2), "hex"));
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
