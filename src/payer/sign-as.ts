import { type Address, addressOfPublicKey, type Hex, isBytes32, toBytes, toHex } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { publicKeyOf, signDigest } from "../util/secp256k1.ts";
import { type KeySigner, signerFor } from "./sign-payment.ts";
import { type TestPayerName, testPayers } from "./test-payers.ts";

/** Signs for a test payer in the way its kind of account signs: see {@link signerFor}. */
export const signerAs = (payer: TestPayerName): KeySigner => signerFor(payer, sign);

export function isTestPayer(name: string): name is TestPayerName {
  return Object.hasOwn(testPayers, name);
}

/**
 * Makes the signer of a test payer, by its name, or of a private key.
 *
 * @throws {KitError} of a text that is neither
 */
export function signerNamed(payer: string): KeySigner {
  if (isTestPayer(payer)) return signerAs(payer);
  try {
    if (isBytes32(payer)) return createPayerSigner(payer);
  } catch {
    // Outside the curve's order: wrong like what is no key at all.
  }
  throw noPayer();
}

/** Of what is to pay, and is no payer. */
export function noPayer(): KitError {
  const names = Object.keys(testPayers).join(", ");
  return new KitError(`The payer is neither a test payer (${names}) nor a private key`, {
    hints: ["A private key is 0x and 64 hexadecimal digits. In a test, a viem account works too."],
  });
}

/**
 * Signs payments with a private key, as a viem account would: the same signature, without viem's import, which
 * takes 100 ms.
 *
 * @param address the payer's, where that is not the key's: a wallet that the key controls
 * @throws when the key is not 32 bytes or outside the curve's order
 */
export function createPayerSigner(privateKey: Hex, address?: Address): KeySigner {
  const own = address ?? addressOfPublicKey(publicKeyOf(toBytes(privateKey)));
  return signerFor({ address: own, privateKey }, sign);
}

function sign(digest: Hex, privateKey: Hex): Hex {
  const { rs, recoveryId } = signDigest(toBytes(digest), toBytes(privateKey));
  return `${toHex(rs)}${recoveryId === 0 ? "1b" : "1c"}`;
}
