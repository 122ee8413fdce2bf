import type { Authorizer, NetworkConfig } from "../../config/serve-config.ts";
import { encodeFields, encodeWhole, type TransactionFields } from "../../protocol/encode-transaction.ts";
import {
  type Address,
  addressOfPublicKey,
  type Hex,
  isBytes32,
  keccakBytes,
  toHex,
} from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { publicKeyOf, signDigest } from "../../util/secp256k1.ts";
import type { Fees } from "../fees.ts";

/** Signs with a key of this process, and can also send coins. */
export type CoinSigner = Signer & {
  /** @param transaction `value` is in wei */
  signTransfer(transaction: TransactionFields & { value: bigint }): Promise<SignedTransaction>;
};

/** A transaction ready for broadcast, with its fees, which a replacement must exceed. */
export type SignedTransaction = Fees & { raw: Hex; hash: Hex };

/** Signs for an operator, whose key is in this process or in a remote service. */
export type Signer = {
  readonly address: Address;
  /** @param transaction carries no value; `nonce` is the operator's txNonce */
  signTransaction(transaction: TransactionFields): Promise<SignedTransaction>;
};

/**
 * Creates a signer whose key is in this process.
 *
 * @throws KitError when the key is invalid. The error has no cause, because libraries quote the key in theirs.
 */
export function createLocalSigner(privateKey: Hex): CoinSigner {
  const { key, address } = readKey(privateKey);
  async function sign(transaction: TransactionFields & { value?: bigint }): Promise<SignedTransaction> {
    const { maxFeePerGas, maxPriorityFeePerGas } = transaction;
    const fields = encodeFields(transaction);
    const { rs, recoveryId } = signDigest(hashOf(encodeWhole(fields)), key);
    const signature = Buffer.from(rs).toString("hex");
    const raw = encodeWhole(fields, {
      r: signature.slice(0, 64),
      s: signature.slice(64),
      yParity: recoveryId,
    });
    return { raw, hash: toHex(hashOf(raw)), maxFeePerGas, maxPriorityFeePerGas };
  }
  return { address, signTransaction: sign, signTransfer: sign };
}

/**
 * Creates the signers of claims and refunds for shops, with keys in this process. Shops are offered the first one; the
 * others sign for channels that were opened with them.
 *
 * @throws KitError when a key is invalid
 */
export function createAuthorizers(
  privateKeys: readonly Hex[],
): Pick<NetworkConfig, "receiverAuthorizer" | "authorizers"> {
  const authorizers = privateKeys.map((privateKey): Authorizer => {
    const { key, address } = readKey(privateKey);
    return {
      address,
      sign(digest) {
        const { rs, recoveryId } = signDigest(Buffer.from(digest.slice(2), "hex"), key);
        return `0x${Buffer.from(rs).toString("hex")}${recoveryId === 0 ? "1b" : "1c"}`;
      },
    };
  });
  return { receiverAuthorizer: authorizers[0]?.address, authorizers };
}

function hashOf(bytes: Hex): Uint8Array {
  return keccakBytes(Buffer.from(bytes.slice(2), "hex"));
}

function readKey(privateKey: Hex): { key: Uint8Array; address: Address } {
  try {
    // Checked first, because Buffer would silently stop at the first character that is no digit.
    const key = Buffer.from(isBytes32(privateKey) ? privateKey.slice(2) : "", "hex");
    return { key, address: addressOfPublicKey(publicKeyOf(key)) };
  } catch {
    throw new KitError(
      "A private key must be 32 bytes of hex after 0x, above zero and below the order of secp256k1",
    );
  }
}
