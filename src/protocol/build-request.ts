import type { Authorization } from "./authorization.ts";
import type { Address, Hex } from "./hex.ts";
import { type Asset, formatNetwork, type Network } from "./networks.ts";
import type { X402Version } from "./requests.ts";

/** A signed payment and what it is for; `amount` in the asset's smallest unit. */
export type PaymentParts = {
  x402Version: X402Version;
  network: Pick<Network, "name" | "caip2">;
  asset: Pick<Asset, "address" | "name" | "version">;
  /** The facilitator contract of the network. */
  payTo: Address;
  amount: bigint;
  /** The URL that is paid for. */
  resource: string;
  authorization: Authorization;
  signature: Hex;
};

/** An authorization as JSON carries it: integers as decimal strings. */
export function authorizationJson(authorization: Authorization): Record<keyof Authorization, string> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    from,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce,
  };
}

/** The body of a verify or settle call, as public clients and servers of the given version write it. */
export function buildPaymentRequest(parts: PaymentParts): Record<string, unknown> {
  const { x402Version, network, asset, payTo, amount, resource, authorization, signature } = parts;
  const networkName = formatNetwork(network, x402Version);
  const payload = { signature, authorization: authorizationJson(authorization) };
  const extra = { name: asset.name, version: asset.version };

  if (x402Version === 1) {
    return {
      x402Version,
      paymentPayload: { x402Version, scheme: "exact", network: networkName, payload },
      paymentRequirements: {
        scheme: "exact",
        network: networkName,
        maxAmountRequired: amount.toString(),
        resource,
        description: "",
        mimeType: "application/json",
        payTo,
        maxTimeoutSeconds: 60,
        asset: asset.address,
        extra,
      },
    };
  }
  const accepted = {
    scheme: "exact",
    network: networkName,
    amount: amount.toString(),
    asset: asset.address,
    payTo,
    maxTimeoutSeconds: 60,
    extra,
  };
  return {
    x402Version,
    paymentPayload: { x402Version, resource: { url: resource }, accepted, payload },
    paymentRequirements: { ...accepted },
  };
}
