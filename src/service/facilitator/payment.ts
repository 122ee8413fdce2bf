import type { NetworkConfig } from "../../config/network-config.ts";
import { type Authorization, authorizationDigest, domainSeparator } from "../../protocol/authorization.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";

/** A request that passed the pure checks: a payment that one network, asset and contract could settle. */
export type SettleablePayment = {
  /** Also the id of its settlement. */
  id: Hex;
  network: NetworkConfig;
  asset: Asset;
  authorization: Authorization;
  signature: Hex;
  /** What the signature is over (EIP-712). */
  digest: Hex;
};

/** Makes payments of one network's requests, with the domain separators of its assets computed once. */
export function createPaymentReader(
  network: NetworkConfig,
): (request: PaymentRequest) => SettleablePayment | undefined {
  const domains = network.assets.map((asset) => ({
    asset,
    separator: domainSeparator(asset, network.chainId),
  }));
  return ({ settlementId, authorization, signature, requirements }) => {
    const domain = domains.find(({ asset }) => sameAddress(asset.address, requirements.asset));
    if (domain === undefined) return undefined;
    const { asset, separator } = domain;
    return {
      id: settlementId,
      network,
      asset,
      authorization,
      signature,
      digest: authorizationDigest(separator, authorization),
    };
  };
}
