import { isPaidBy } from "../../protocol/networks.ts";
import { propertyOf } from "../../protocol/wire-values.ts";
import type { Method } from "../method.ts";
import { authorizationDigest, domainSeparator } from "./authorization.ts";
import { authorizationOf, eip3009Words, exactEip3009, readPayload, writePayload } from "./eip3009-payload.ts";

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
