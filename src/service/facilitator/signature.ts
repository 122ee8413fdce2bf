import type { Chain } from "../../chain/chain.ts";
import { normaliseSignature, recoverSigner } from "../../chain/signing/recover.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import { refusals } from "../../protocol/refusals.ts";
import { isErc6492 } from "../../protocol/signature.ts";
import type { SettleablePayment } from "./payment.ts";

/** The signature as the token takes it. */
export type ProvenSignature = { signature: Hex };

/**
 * Whether the payer signed the payment: by plain ECDSA, without a request, or else by asking the contract at the
 * payer's address (ERC-1271), which costs one request.
 *
 * A delegated account (EIP-7702) whose plain signature recovers passes here, since its key did sign; whether the
 * delegate agrees, which is what the token asks, shows in the simulation.
 */
export async function verifySignature(
  payment: SettleablePayment,
  chain: Chain,
  ways: Pick<WaysToPay, "methodOf">,
): Promise<ProvenSignature | Invalid> {
  const { signed, digest } = payment;
  const { payer, signature } = signed;
  const signer = recoverSigner(digest, signature);
  if (signer !== undefined && sameAddress(signer, payer)) {
    return { signature: normaliseSignature(signature) };
  }

  const proof = await chain.askWallet(payer, digest, signature, payment.id);
  if (proof === "accepted") return { signature };
  if (proof === "no_code" && isErc6492(signature)) {
    return refusals.walletNotDeployed(payer, payment.network.name);
  }
  if (proof !== "no_code") return refusals.walletRefuses(payer);
  const { asset, network } = payment;
  const domain = { asset, chainId: network.chainId };
  const mistake = await ways.methodOf(signed.method).describeWrongSignature(signed, domain, recoverSigner);
  return refusals.notSignedByPayer(payer, network.name, asset, mistake);
}
