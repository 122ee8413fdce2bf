import type { Address, Hex } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import {
  inObject,
  type Place,
  readBytes32,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../protocol/wire-values.ts";
import type { Authorization } from "./authorization.ts";

/** What payments by EIP-3009 are called. */
export const exactEip3009 = "exact-eip3009";

/** Reads `paymentPayload.payload` of scheme "exact" on EVM networks, the same in both versions. */
export function readPayload(place: Place, asset: Address): SignedPayment {
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

/** `paymentPayload.payload` of a signed authorization, as public clients write it. */
export function writePayload(
  authorization: Authorization,
  signature: Hex,
): { signature: Hex; authorization: Record<keyof Authorization, string> } {
  return { signature, authorization: authorizationJson(authorization) };
}
