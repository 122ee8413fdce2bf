import { type Address, addressWord, byteWords, type Hex, uintWord } from "./hex.ts";

/** The form of a plain account's signature in USDC: r, s and v. */
const ecdsaSignature = /^0x[0-9a-fA-F]{130}$/;

/** Half the order of secp256k1. USDC refuses an s above it, since (r, n - s) would sign the same. */
const highestS = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0";

/** The right values of v, and those of some wallets. */
const recoveryIds: ReadonlyMap<string, 0 | 1> = new Map([
  ["1b", 0],
  ["1c", 1],
  ["00", 0],
  ["01", 1],
]);

/** The parts of a plain signature: r and s as 128 hexadecimal digits, and which of two keys made it. */
export type EcdsaSignature = { rs: string; recoveryId: 0 | 1 };

/**
 * Reads a plain signature in a form that the token could accept; undefined when it is not 65 bytes, its s is in the
 * upper half, or its v is other than 27, 28, 0 or 1. Signatures of other lengths are for wallets (EIP-1271).
 */
export function readEcdsaSignature(signature: Hex): EcdsaSignature | undefined {
  if (!ecdsaSignature.test(signature)) return undefined;
  const recoveryId = recoveryIds.get(signature.slice(130).toLowerCase());
  if (recoveryId === undefined || signature.slice(66, 130).toLowerCase() > highestS) return undefined;
  return { rs: signature.slice(2, 130), recoveryId };
}

/** The 32 bytes that end the signature of a wallet that is not deployed yet (ERC-6492). */
const erc6492Suffix = "6492".repeat(16);

/** Whether a signature says that it is of a wallet that is not deployed yet (ERC-6492). */
export function isErc6492(signature: Hex): boolean {
  return signature.toLowerCase().endsWith(erc6492Suffix);
}

/**
 * The signature of a wallet that is not deployed yet (ERC-6492): `abi.encode(factory, factoryCalldata, signature)` and
 * the suffix. The wallet's owner signs; calling the factory deploys the wallet.
 */
export function wrapErc6492(factory: Address, factoryCalldata: Hex, signature: Hex): Hex {
  const calldata = byteWords(factoryCalldata);
  const head = 3 * 32;
  const offsets = [uintWord(BigInt(head)), uintWord(BigInt(head + calldata.length / 2))];
  return `0x${addressWord(factory)}${offsets.join("")}${calldata}${byteWords(signature)}${erc6492Suffix}`;
}
