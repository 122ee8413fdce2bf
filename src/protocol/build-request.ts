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

/** What a seller asks for; `amount` in the asset's smallest unit. */
export type RequirementParts = Omit<PaymentParts, "authorization" | "signature"> & {
  description?: string;
  maxTimeoutSeconds?: number;
};

/** The requirements of a payment, as public servers of the given version write them. */
export function buildRequirements(parts: RequirementParts): Record<string, unknown> {
  const { x402Version, network, asset, payTo, amount, resource } = parts;
  const { description = "", maxTimeoutSeconds = 60 } = parts;
  const kind = { scheme: "exact", network: formatNetwork(network, x402Version) };
  const extra = { name: asset.name, version: asset.version };
  if (x402Version === 2) {
    return { ...kind, amount: amount.toString(), asset: asset.address, payTo, maxTimeoutSeconds, extra };
  }
  const sold = { resource, description, mimeType: "application/json" };
  const paid = { payTo, maxTimeoutSeconds, asset: asset.address, extra };
  return { ...kind, maxAmountRequired: amount.toString(), ...sold, ...paid };
}

/** The body of a verify or settle call, as public clients and servers of the given version write it. */
export function buildPaymentRequest(parts: PaymentParts): Record<string, unknown> {
  const { x402Version, network, resource, authorization, signature } = parts;
  const payload = { signature, authorization: authorizationJson(authorization) };
  const paymentRequirements = buildRequirements(parts);
  const paymentPayload =
    x402Version === 1
      ? { x402Version, scheme: "exact", network: network.name, payload }
      : { x402Version, resource: { url: resource }, accepted: { ...paymentRequirements }, payload };
  return { x402Version, paymentPayload, paymentRequirements };
}
