import { type Address, addressOfPublicKey, type Hex, isBytes32, toBytes, toHex } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { publicKeyOf, signDigest } from "../util/secp256k1.ts";
import { type KeySigner, signerFor } from "./sign-payment.ts";
import { type TestPayerName, testPayers } from "./test-payers.ts";

/** The signer for a test payer: see {@link signerFor}. */
export const signerAs = (payer: TestPayerName): KeySigner => signerFor(payer, sign);

export function isTestPayer(name: string): name is TestPayerName {
  return Object.hasOwn(testPayers, name);
}

/**
 * Creates a signer from the name of a test payer, or from a private key.
 *
 * @throws {KitError} if the text is neither
 */
export function signerNamed(payer: string): KeySigner {
  if (isTestPayer(payer)) return signerAs(payer);
  try {
    if (isBytes32(payer)) return createPayerSigner(payer);
  } catch {
    // Outside the curve's order: report it like any other invalid key.
  }
  throw noPayer();
}

/** The error for a payer that is neither a test payer nor a key. */
export function noPayer(): KitError {
  const names = Object.keys(testPayers).join(", ");
  return new KitError(`The payer is neither a test payer (${names}) nor a private key`, {
    hints: ["A private key is 0x and 64 hexadecimal digits. In a test, a viem account works too."],
  });
}

/**
 * Creates a signer for a private key. It makes the same signatures as a viem account, but without importing viem, which
 * takes 100 ms.
 *
 * @param address the payer's address, if it is a wallet that the key controls
 * @throws if the key is not 32 bytes, or is outside the curve's order
 */
export function createPayerSigner(privateKey: Hex, address?: Address): KeySigner {
  const own = address ?? addressOfPublicKey(publicKeyOf(toBytes(privateKey)));
  return signerFor({ address: own, privateKey }, sign);
}

function sign(digest: Hex, privateKey: Hex): Hex {
  const { rs, recoveryId } = signDigest(toBytes(digest), toBytes(privateKey));
  return `${toHex(rs)}${recoveryId === 0 ? "1b" : "1c"}`;
}
