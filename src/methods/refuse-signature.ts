import type { Invalid } from "../protocol/catalogue.ts";
import type { ServedNetwork } from "../protocol/checks.ts";
import { sameAddress } from "../protocol/hex.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import { refusals } from "../protocol/refusals.ts";
import { isErc6492, type SignedPayment, unwrapErc6492 } from "../protocol/signed-payment.ts";
import type { Method, Recover } from "./method.ts";

/** The EIP-1271 verdict on a signature by the code at the payer's address, if any. */
export type WalletProof = "no_code" | "accepted" | "refused";

type Place = {
  network: Pick<ServedNetwork, "name" | "walletFactories"> & Pick<Network, "chainId">;
  asset: Asset;
};

/**
 * Refuses a signature that is not the payer's plain ECDSA signature. Returns undefined if the code at the payer's address
 * accepts it, or if the payment may deploy that code (ERC-6492): the simulation then deploys it and checks the signature.
 */
export async function refuseSignature(
  method: Pick<Method, "words" | "deploysWallets" | "describeWrongSignature">,
  payment: SignedPayment,
  proof: WalletProof,
  { network, asset, recover }: Place & { recover: Recover },
): Promise<Invalid | undefined> {
  const { payer, signature } = payment;
  const { name, chainId, walletFactories = [] } = network;
  if (proof === "accepted") return undefined;
  if (proof === "refused") return refusals.walletRefuses(payer);
  if (!isErc6492(signature)) {
    const mistake = await method.describeWrongSignature(payment, { asset, chainId }, recover);
    return refusals.notSignedByPayer(payer, name, method.words.domain(asset), mistake);
  }
  const factory = unwrapErc6492(signature)?.factory;
  if (factory === undefined || !method.deploysWallets) return refusals.walletNotDeployed(payer, name);
  const isAllowed = walletFactories.some((one) => sameAddress(one, factory));
  return isAllowed ? undefined : refusals.factoryNotAllowed(payer, name, factory);
}
