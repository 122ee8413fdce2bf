import type { Address, Hex } from "../../protocol/hex.ts";
import { type Asset, formatNetwork, type Network } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { Authorization } from "./authorization.ts";
import { writePayload } from "./payload.ts";

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
  const payload = writePayload(authorization, signature);
  const paymentRequirements = buildRequirements(parts);
  const paymentPayload =
    x402Version === 1
      ? { x402Version, scheme: "exact", network: network.name, payload }
      : { x402Version, resource: { url: resource }, accepted: { ...paymentRequirements }, payload };
  return { x402Version, paymentPayload, paymentRequirements };
}
