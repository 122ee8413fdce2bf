import type { Address, Hex } from "../../protocol/hex.ts";
import { type Asset, formatNetwork, isPaidBy, type Network } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { PaymentWords, SignedPayment } from "../../protocol/signed-payment.ts";
import {
  inObject,
  type Place,
  propertyOf,
  readBytes32,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../protocol/wire-values.ts";
import type { Method } from "../method.ts";
import {
  type Authorization,
  authorizationDigest,
  authorizationJson,
  domainSeparator,
} from "./authorization.ts";

/** What payments by EIP-3009 are called. */
export const exactEip3009 = "exact-eip3009";

/** Reads `paymentPayload.payload` of scheme "exact" on EVM networks, the same in both versions. */
function readPayload(place: Place, asset: Address): SignedPayment {
  const payload = inObject(place);
  const signature = readSignature(payload("signature"));
  const authorization = inObject(payload("authorization"));
  return paymentOf(asset, {
    authorization: {
      from: readWireAddress(authorization("from")),
      to: readWireAddress(authorization("to")),
      value: readUint256(authorization("value")),
      validAfter: readUint256(authorization("validAfter")),
      validBefore: readUint256(authorization("validBefore")),
      nonce: readBytes32(authorization("nonce")),
    },
    signature,
  });
}

/** A signed authorization as the payment that it is. Both of its bounds are exclusive. */
export function paymentOf(
  asset: Address,
  { authorization, signature }: { authorization: Authorization; signature: Hex },
): SignedPayment {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  return {
    method: exactEip3009,
    payer: from,
    payTo: to,
    asset,
    limit: value,
    window: { first: validAfter + 1n, last: validBefore - 1n },
    nonce,
    nonceSpace: asset,
    signature,
    payload: null,
  };
}

/** The message that was signed for a payment. */
export function authorizationOf({
  payer,
  payTo,
  limit,
  window,
  nonce,
}: Pick<SignedPayment, "payer" | "payTo" | "limit" | "window" | "nonce">): Authorization {
  return {
    from: payer,
    to: payTo,
    value: limit,
    validAfter: window.first - 1n,
    validBefore: window.last + 1n,
    nonce,
  };
}

/** `paymentPayload.payload` of a signed authorization, as public clients write it. */
function writePayload(
  authorization: Authorization,
  signature: Hex,
): { signature: Hex; authorization: Record<keyof Authorization, string> } {
  return { signature, authorization: authorizationJson(authorization) };
}

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
  /** “exact” by default. */
  scheme?: "exact" | "upto";
  /** What the way to pay has in `extra`, beside the token's name and version. */
  extra?: Readonly<Record<string, string>>;
};

/** Requirements as public servers write them: the amount is `maxAmountRequired` in version 1, `amount` in version 2. */
type WrittenRequirements = {
  scheme: "exact" | "upto";
  network: string;
  amount?: string;
  maxAmountRequired?: string;
  asset: Address;
  payTo: Address;
  maxTimeoutSeconds: number;
  extra: Readonly<Record<string, string>>;
  /** The rest of version 1. */
  resource?: string;
  description?: string;
  mimeType?: string;
};

/** The body of a verify or settle call, as public clients and servers write it. */
export type WrittenRequest = {
  x402Version: X402Version;
  paymentPayload: {
    x402Version: X402Version;
    /** What the payer has signed, and the signature. */
    payload: Readonly<Record<string, unknown>>;
    /** Of version 1. */
    scheme?: "exact";
    network?: string;
    /** Of version 2. */
    resource?: { url: string };
    accepted?: WrittenRequirements;
    extensions?: object;
  };
  paymentRequirements: WrittenRequirements;
};

/** The requirements of a payment, as public servers of the given version write them. */
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

/** The body of a verify or settle call, as public clients and servers of the given version write it. */
export function buildPaymentRequest(parts: PaymentParts): WrittenRequest {
  return buildBody(parts, writePayload(parts.authorization, parts.signature));
}

/** The same of a payment that was written already, in whatever way it is paid. */
export function buildBody(parts: RequirementParts, payload: object, extensions?: object): WrittenRequest {
  const { x402Version, network, resource } = parts;
  const paymentRequirements = buildRequirements(parts);
  const paymentPayload: WrittenRequest["paymentPayload"] =
    x402Version === 1
      ? { x402Version, scheme: "exact", network: network.name, payload: { ...payload } }
      : {
          ...{
            x402Version,
            resource: { url: resource },
            accepted: { ...paymentRequirements },
            payload: { ...payload },
          },
          ...(extensions !== undefined && { extensions }),
        };
  return { x402Version, paymentPayload, paymentRequirements };
}

/** The members of EIP-3009, as messages name them. Both bounds are outside of the window. */
export const eip3009Words: PaymentWords = {
  payTo: "authorization.to",
  limit: "authorization.value",
  start: "validAfter",
  end: "validBefore",
  startsSaid: "after",
  endsSaid: "before",
  includesBounds: false,
  reasons: {},
  judge: "The token",
  domain: ({ name, version }) => `name "${name}", version "${version}"`,
};

/** Scheme "exact" by EIP-3009 `TransferWithAuthorization`: what both versions of the protocol pay with. */
export const exactEip3009Method: Method = {
  name: exactEip3009,
  scheme: "exact",
  versions: [1, 2],
  transfer: "eip3009",
  takesLess: false,
  words: eip3009Words,
  owns: (payload) => propertyOf(payload, "authorization") !== undefined,
  payerOf: (payload) => propertyOf(propertyOf(payload, "authorization"), "from"),
  read: readPayload,

  digester(asset, chainId) {
    const separator = domainSeparator(asset, chainId);
    return (payment) => authorizationDigest(separator, authorizationOf(payment));
  },

  extra: ({ assets }) => (assets.some((asset) => isPaidBy(asset, "eip3009")) ? {} : undefined),

  async describeWrongSignature(payment, right, recover) {
    // Most pages never need it.
    const { describeWrongSignature } = await import("./explain-eip3009.ts");
    const signed = { authorization: authorizationOf(payment), signature: payment.signature };
    return describeWrongSignature(signed, right, recover);
  },

  async describe(payment) {
    // Only people's eyes need it.
    const { describeAuthorization } = await import("./explain-eip3009.ts");
    return describeAuthorization(authorizationOf(payment));
  },

  write: (payment) => writePayload(authorizationOf(payment), payment.signature),
};
