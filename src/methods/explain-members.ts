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

/** Reads a uint256. Accepts a number in place of a decimal string, because that is a common mistake. */
export function readAnyNumber(value: unknown): bigint | undefined {
  const text = Number.isSafeInteger(value) ? `${value}` : value;
  return typeof text === "string" ? (parseUint256(text) ?? undefined) : undefined;
}

/** Returns true if the payer signed one of these texts with personal_sign (EIP-191). */
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

/** The hashes that personal_sign (EIP-191) signs for a text, and for its bytes if the text is a bytes32. */
function messageHashes(text: string): Hex[] {
  const plain = new TextEncoder().encode(text);
  const messages = isBytes32(text) ? [toBytes(text), plain] : [plain];
  return messages.map((message) => {
    const prefix = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${message.length}`);
    return keccak256(toHex(new Uint8Array([...prefix, ...message])));
  });
}
