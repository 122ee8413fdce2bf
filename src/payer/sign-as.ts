import { type AuthorizationSigner, createDigestSigner } from "../methods/exact-eip3009/authorization.ts";
import { type Address, addressOfPublicKey, type Hex, isBytes32, toBytes, toHex } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { publicKeyOf, signDigest } from "../util/secp256k1.ts";
import { type TestPayerName, testPayers } from "./test-payers.ts";
import { wrapForUndeployed } from "./undeployed-wallet.ts";

/**
 * What signs for a test payer in the way its kind of account signs: a plain signature for an account with a key, delegated or not,
 * the owner's signature for a contract wallet, and the owner's signature wrapped with the wallet's deployment (ERC-6492) for the
 * undeployed one.
 */
export function signerAs(payer: TestPayerName): KeySigner {
  const { address, privateKey } = testPayers[payer];
  const signer = createPayerSigner(privateKey, address);
  if (payer !== "undeployedWallet") return signer;
  return keySigner(address, (digest) => wrapForUndeployed(signer.signDigest(digest)));
}

export function isTestPayer(name: string): name is TestPayerName {
  return Object.hasOwn(testPayers, name);
}

/**
 * What signs for a test payer, by its name, or with a private key.
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

/** Signs typed data of EIP-3009, and digests of anything. */
export type KeySigner = AuthorizationSigner & { signDigest(digest: Hex): Hex };

/**
 * Signs payments with a private key, as a viem account would: the same signature, without viem's import, which
 * takes 100 ms.
 *
 * @param address the payer's, where that is not the key's: a wallet that the key controls
 * @throws when the key is not 32 bytes or outside the curve's order
 */
export function createPayerSigner(privateKey: Hex, address?: Address): KeySigner {
  const key = toBytes(privateKey);
  const sign = (digest: Hex): Hex => {
    const { rs, recoveryId } = signDigest(toBytes(digest), key);
    return `${toHex(rs)}${recoveryId === 0 ? "1b" : "1c"}`;
  };
  return keySigner(address ?? addressOfPublicKey(publicKeyOf(key)), sign);
}

function keySigner(address: Address, sign: (digest: Hex) => Hex): KeySigner {
  return { ...createDigestSigner(address, sign), signDigest: sign };
}
