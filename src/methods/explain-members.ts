import {
  type Address,
  type Hex,
  isBytes32,
  keccak256,
  sameAddress,
  toBytes,
  toHex,
} from "../protocol/hex.ts";
import { parseUint256 } from "../protocol/wire-values.ts";

/** Reads a uint256. A number where a text of digits belongs is read too: that mistake is a usual one. */
export function readAnyNumber(value: unknown): bigint | undefined {
  const text = Number.isSafeInteger(value) ? `${value}` : value;
  return typeof text === "string" ? (parseUint256(text) ?? undefined) : undefined;
}

/** Returns true if a signature is the payer's over one of these texts, as personal_sign (EIP-191) signs it. */
export function isSignedAsMessage(
  texts: readonly string[],
  signerOf: (digest: Hex) => Address | undefined,
  payer: Address,
): boolean {
  return texts.flatMap(messageHashes).some((hash) => {
    const signer = signerOf(hash);
    return signer !== undefined && sameAddress(signer, payer);
  });
}

/** The hashes that personal_sign (EIP-191) signs for a text, and for the bytes that it may stand for. */
function messageHashes(text: string): Hex[] {
  const plain = new TextEncoder().encode(text);
  const messages = isBytes32(text) ? [toBytes(text), plain] : [plain];
  return messages.map((message) => {
    const prefix = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${message.length}`);
    return keccak256(toHex(new Uint8Array([...prefix, ...message])));
  });
}
