import {
  type Authorization,
  type AuthorizationSigner,
  type AuthorizationTerms,
  createDigestSigner,
  signAuthorization,
} from "../methods/exact-eip3009/authorization.ts";
import type { Permit } from "../methods/permit2/permit.ts";
import { type PermitTerms, signPermit } from "../methods/permit2/sign-permit.ts";
import { addressOfPublicKey, type Hex, toBytes, toHex } from "../protocol/hex.ts";
import { publicKeyOf, signDigest } from "../util/secp256k1.ts";
import { type TestPayerName, testPayers } from "./test-payers.ts";
import { wrapForUndeployed } from "./undeployed-wallet.ts";

/**
 * Signs a payment as one of the test payers, in the way its kind of account signs: a plain signature for an account
 * with a key, delegated or not, the owner's signature for a contract wallet, and the owner's signature wrapped with
 * the wallet's deployment (ERC-6492) for the undeployed one. The terms are those of {@link signAuthorization}.
 *
 * @example
 * const { authorization, signature } = await signAs("smartWallet", terms);
 */
export async function signAs(
  payer: TestPayerName,
  terms: Omit<AuthorizationTerms, "from">,
): Promise<{ authorization: Authorization; signature: Hex }> {
  const { address, privateKey } = testPayers[payer];
  const signed = await signAuthorization(createPayerSigner(privateKey), { ...terms, from: address });
  return { ...signed, signature: wrapIfUndeployed(payer, signed.signature) };
}

/** The same for Permit2. The terms are those of {@link signPermit}. */
export async function signPermitAs(
  payer: TestPayerName,
  terms: Omit<PermitTerms, "from">,
): Promise<{ permit: Permit; signature: Hex }> {
  const { address, privateKey } = testPayers[payer];
  const signed = await signPermit(createPayerSigner(privateKey), { ...terms, from: address });
  return { ...signed, signature: wrapIfUndeployed(payer, signed.signature) };
}

function wrapIfUndeployed(payer: TestPayerName, signature: Hex): Hex {
  return payer === "undeployedWallet" ? wrapForUndeployed(signature) : signature;
}

/**
 * Signs payments with a private key, as a viem account would: the same signature, without viem's import, which
 * takes 100 ms.
 *
 * @throws when the key is not 32 bytes or outside the curve's order
 */
export function createPayerSigner(privateKey: Hex): AuthorizationSigner & { signDigest(digest: Hex): Hex } {
  const key = toBytes(privateKey);
  const sign = (digest: Hex): Hex => {
    const { rs, recoveryId } = signDigest(toBytes(digest), key);
    return `${toHex(rs)}${recoveryId === 0 ? "1b" : "1c"}`;
  };
  return { ...createDigestSigner(addressOfPublicKey(publicKeyOf(key)), sign), signDigest: sign };
}
