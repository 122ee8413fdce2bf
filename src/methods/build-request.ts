import type { Address } from "../protocol/hex.ts";
import { type Asset, formatNetwork, type Network } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";

/** The input for a seller's requirements; `amount` in the asset's smallest unit. */
export type RequirementParts = {
  x402Version: X402Version;
  network: Pick<Network, "name" | "caip2">;
  asset: Pick<Asset, "address" | "name" | "version">;
  payTo: Address;
  amount: bigint;
  resource: string;
  description?: string;
  maxTimeoutSeconds?: number;
  /** Default: "exact". */
  scheme?: string;
  /** The fields of `extra` for the payment method, in addition to the token's name and version. */
  extra?: Readonly<Record<string, string | number>>;
};

/** Requirements as public servers write them. The amount is `maxAmountRequired` in version 1, `amount` in version 2. */
export type WrittenRequirements = {
  scheme: string;
  network: string;
  amount?: string;
  maxAmountRequired?: string;
  asset: Address;
  payTo: Address;
  maxTimeoutSeconds: number;
  extra: Readonly<Record<string, string | number>>;
  /** Version 1 only, like the two below. */
  resource?: string;
  description?: string;
  mimeType?: string;
};

/** The body of a verify or settle call, as public clients and servers write it. */
export type WrittenRequest = {
  x402Version: X402Version;
  paymentPayload: {
    x402Version: X402Version;
    /** The signed message and its signature. */
    payload: Readonly<Record<string, unknown>>;
    /** Version 1. */
    scheme?: "exact";
    network?: string;
    /** Version 2. */
    resource?: { url: string };
    accepted?: WrittenRequirements;
    extensions?: object;
  };
  paymentRequirements: WrittenRequirements;
};

/** Builds the requirements of a payment as public servers of the given version write them. */
export function buildRequirements(parts: RequirementParts): WrittenRequirements {
  const { x402Version, network, asset, payTo, amount, resource } = parts;
  const { description = "", maxTimeoutSeconds = 60, scheme = "exact" } = parts;
  const kind = { scheme, network: formatNetwork(network, x402Version) };
  const domain = asset.version === "" ? {} : { name: asset.name, version: asset.version };
  const extra = { ...domain, ...parts.extra };
  if (x402Version === 2) {
    return { ...kind, amount: amount.toString(), asset: asset.address, payTo, maxTimeoutSeconds, extra };
  }
  const sold = { resource, description, mimeType: "application/json" };
  const paid = { payTo, maxTimeoutSeconds, asset: asset.address, extra };
  return { ...kind, maxAmountRequired: amount.toString(), ...sold, ...paid };
}

/** Builds the body of a verify or settle call around a written `payload`, for any payment method. */
export function buildBody(parts: RequirementParts, payload: object, extensions?: object): WrittenRequest {
  const { x402Version, resource } = parts;
  const paymentRequirements = buildRequirements(parts);
  const offer = { x402Version, written: paymentRequirements, resource: { url: resource } };
  return { x402Version, paymentPayload: writePayload(offer, payload, extensions), paymentRequirements };
}

/**
 * Builds `paymentPayload` for an offer. Version 2 repeats the offer as the shop wrote it: public shops compare every field.
 *
 * @param payload the output of the payment method
 */
export function writePayload<Written extends { network: string }, Resource>(
  { x402Version, written, resource }: { x402Version: X402Version; written: Written; resource: Resource },
  payload: object,
  extensions?: object,
) {
  return x402Version === 1
    ? { x402Version, scheme: "exact" as const, network: written.network, payload: { ...payload } }
    : {
        x402Version,
        resource,
        accepted: { ...written },
        payload: { ...payload },
        ...(extensions && { extensions }),
      };
}
