import type { NetworkConfig } from "../../config/network-config.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { Hex } from "../../protocol/hex.ts";
import { type Asset, findAsset } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";

/** A request that passed the pure checks: a payment that one network, asset and contract could settle. */
export type SettleablePayment = {
  /** Also the id of its settlement. */
  id: Hex;
  network: NetworkConfig;
  asset: Asset;
  signed: SignedPayment;
  /** What the signature is over (EIP-712). */
  digest: Hex;
};

/** Makes payments of one network's requests; what gives their digests is made once for each asset and way to pay. */
export function createPaymentReader(
  network: NetworkConfig,
  ways: Pick<WaysToPay, "methodOf">,
): (request: PaymentRequest) => SettleablePayment | undefined {
  const digesters = new Map<string, (payment: SignedPayment) => Hex>();

  function digestOf(signed: SignedPayment, asset: Asset): Hex {
    const key = `${signed.method} ${asset.address}`;
    const digester = digesters.get(key) ?? ways.methodOf(signed.method).digester(asset, network.chainId);
    digesters.set(key, digester);
    return digester(signed);
  }

  return ({ settlementId: id, payment: signed, requirements }) => {
    const asset = findAsset(network.assets, requirements.asset);
    return asset && { id, network, asset, signed, digest: digestOf(signed, asset) };
  };
}
