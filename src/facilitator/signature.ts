import type { Chain } from "../chain/chain.ts";
import { normaliseSignature, recoverSigner } from "../chain/recover.ts";
import { type Hex, sameAddress } from "../protocol/hex.ts";
import { type Invalid, invalid } from "../protocol/reasons.ts";
import type { Payment } from "./payment.ts";

/** The 32 bytes that end an ERC-6492 signature of a wallet that is not deployed yet. */
const erc6492Suffix = "6492649264926492649264926492649264926492649264926492649264926492";

/** The signature as the token takes it. */
export type ProvenSignature = { signature: Hex };

/**
 * Whether the payer signed the payment: by plain ECDSA, without asking anybody, or else by the word of the
 * contract at the payer's address (EIP-1271), which costs one request.
 *
 * A delegated account (EIP-7702) whose plain signature recovers passes here, since its key did sign; whether the
 * delegate agrees, which is what the token asks, shows in the simulation.
 */
export async function proveSignature(payment: Payment, chain: Chain): Promise<ProvenSignature | Invalid> {
  const { authorization, digest, signature } = payment;
  const signer = recoverSigner(digest, signature);
  if (signer !== undefined && sameAddress(signer, authorization.from)) {
    return { signature: normaliseSignature(signature) };
  }

  const proof = await chain.askWallet(authorization.from, digest, signature);
  if (proof === "accepted") return { signature };
  if (proof === "no_code" && isErc6492(signature)) {
    return invalid(
      "invalid_exact_evm_payload_undeployed_smart_wallet",
      `The smart wallet ${authorization.from} is not deployed on ${payment.network.name}; deploy it before paying`,
    );
  }
  return invalid(
    "invalid_exact_evm_payload_signature",
    proof === "no_code"
      ? `The signature is not that of ${authorization.from} over this authorization on ${payment.network.name} (domain ${payment.asset.name}, version ${payment.asset.version})`
      : `The contract at ${authorization.from} does not accept the signature (EIP-1271)`,
  );
}

function isErc6492(signature: Hex): boolean {
  return signature.toLowerCase().endsWith(erc6492Suffix);
}
