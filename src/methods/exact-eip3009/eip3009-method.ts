import type { Address, Hex } from "../../protocol/hex.ts";
import { isPaidBy } from "../../protocol/networks.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentWords, SignedPayment } from "../../protocol/signed-payment.ts";
import {
  type Part,
  propertyOf,
  readBytes32,
  readInner,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../protocol/wire-values.ts";
import { buildBody, type RequirementParts, type WrittenRequest } from "../build-request.ts";
import { domainSeparator } from "../eip712.ts";
import type { Method } from "../method.ts";
import { type StateRefusals, usualStateRefusals } from "../payment-state.ts";
import {
  type Authorization,
  authorizationDigest,
  authorizationJson,
  signAuthorization,
} from "./authorization.ts";

/** The method name of EIP-3009 payments. */
export const exactEip3009 = "exact-eip3009";

/** Reads `paymentPayload.payload` of scheme "exact" on EVM networks; the same in both versions. */
function readPayload(payload: Part, asset: Address): SignedPayment {
  const signature = readSignature(payload, "signature");
  const part = readInner(payload, "authorization");
  const authorization = {
    from: readWireAddress(part, "from"),
    to: readWireAddress(part, "to"),
    value: readUint256(part, "value"),
    validAfter: readUint256(part, "validAfter"),
    validBefore: readUint256(part, "validBefore"),
    nonce: readBytes32(part, "nonce"),
  };
  return paymentOf(asset, { authorization, signature });
}

/** Converts a signed authorization, whose time bounds are both exclusive, to a payment. */
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

/** The signed message of a payment. */
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

/** Writes `paymentPayload.payload` for a signed authorization, as public clients do. */
function writePayload(
  authorization: Authorization,
  signature: Hex,
): { signature: Hex; authorization: Record<keyof Authorization, string> } {
  return { signature, authorization: authorizationJson(authorization) };
}

/** A signed payment and the terms that it pays for; `amount` in the asset's smallest unit. */
export type PaymentParts = Omit<
  RequirementParts,
  "description" | "maxTimeoutSeconds" | "scheme" | "extra"
> & {
  authorization: Authorization;
  signature: Hex;
};

/** Builds the body of a verify or settle call, as public clients and servers of the given version write it. */
export function buildPaymentRequest(parts: PaymentParts): WrittenRequest {
  return buildBody(parts, writePayload(parts.authorization, parts.signature));
}

/** The names of an authorization's fields in messages. Both time bounds are exclusive. */
export const eip3009Words: PaymentWords = {
  payer: "authorization.from",
  nonce: "authorization.nonce",
  payTo: "authorization.to",
  limit: "authorization.value",
  start: "validAfter",
  end: "validBefore",
  startsSaid: "after",
  endsSaid: "before",
  includesBounds: false,
  reasons: {},
  reference: "eip3009",
  judge: "The token",
  domain: ({ name, version }) => `name "${name}", version "${version}"`,
};

export const eip3009StateRefusals: StateRefusals = (facts, one) => [
  facts.failingFactory && refusals.factoryFails(one.payment.payer, one.network, facts.failingFactory),
  ...usualStateRefusals(facts, one),
];

/** Scheme "exact" with EIP-3009 `TransferWithAuthorization`, in both versions of x402. */
export const exactEip3009Method: Method<"exact", "eip3009"> = {
  name: exactEip3009,
  scheme: "exact",
  versions: [1, 2],
  transfer: "eip3009",
  takesLess: false,
  words: eip3009Words,
  stateRefusals: eip3009StateRefusals,
  deploysWallets: true,
  owns: (payload) => propertyOf(payload, "authorization") !== undefined,
  payerOf: (payload) => propertyOf(propertyOf(payload, "authorization"), "from"),
  read: readPayload,

  digester(asset, chainId) {
    const separator = domainSeparator(asset, chainId);
    return (payment) => authorizationDigest(separator, authorizationOf(payment));
  },

  async sign(signer, { extra, authorization, permit, ...terms }) {
    return paymentOf(terms.asset.address, await signAuthorization(signer, { ...terms, ...authorization }));
  },

  offerNeeds: ["name", "version"],
  extra: ({ assets }) => (assets.some((asset) => isPaidBy(asset, "eip3009")) ? {} : undefined),

  async describeWrongSignature(payment, right, recover) {
    // Loaded lazily: most pages never need it.
    const { describeWrongSignature } = await import("./explain-eip3009.ts");
    const signed = { authorization: authorizationOf(payment), signature: payment.signature };
    return describeWrongSignature(signed, right, recover);
  },

  async describe(payment) {
    // Loaded lazily: only needed for display.
    const { describeAuthorization } = await import("./explain-eip3009.ts");
    return describeAuthorization(authorizationOf(payment));
  },

  write: (payment) => writePayload(authorizationOf(payment), payment.signature),
};
