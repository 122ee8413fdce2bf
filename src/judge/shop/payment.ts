import {
  type Authorization,
  type AuthorizationTerms,
  signAuthorization,
} from "../../methods/exact-eip3009/authorization.ts";
import { authorizationJson } from "../../methods/exact-eip3009/payload.ts";
import { type PaymentTimes, timesFrom } from "../../methods/exact-eip3009/payment-times.ts";
import type { Hex } from "../../protocol/hex.ts";
import { paymentIdentifierExtension } from "../../protocol/payment-identifier.ts";
import { createPayerSigner } from "../../published/payer-signer.ts";
import { encodeHeader } from "../scene/offers.ts";
import type { CasePayer } from "../scene/payers.ts";
import type { Terms } from "./terms.ts";

/** How a payment deviates from the shop's terms. */
export type Deviation = {
  /** Changes of the signed authorization. */
  authorization?: Partial<Pick<AuthorizationTerms, "to" | "value"> & PaymentTimes>;
  /** Signed for another token or chain. */
  domain?: Partial<Pick<AuthorizationTerms, "asset" | "chainId">>;
  /** Changes of the payment's unsigned part. */
  accepted?: Record<string, unknown>;
  signature?: Hex;
  resource?: unknown;
  /** What the buyer's client calls the payment (`payment-identifier`), in version 2. */
  identifier?: string;
};

/** The header of a payment for a shop's terms, or for terms that deviate from them. */
export async function payFor(
  terms: Terms,
  payer: CasePayer,
  now: bigint,
  deviation: Deviation = {},
): Promise<Record<string, string>> {
  const { network, asset, payTo: to, amount: value, maxTimeoutSeconds } = terms;
  const signed = await signAuthorization(createPayerSigner(payer.privateKey), {
    ...{ asset, chainId: network.chainId, to, value },
    ...timesFrom(now, { until: maxTimeoutSeconds }),
    ...deviation.domain,
    ...deviation.authorization,
  });
  return headerOf(
    terms,
    { ...signed, ...(deviation.signature && { signature: deviation.signature }) },
    deviation,
  );
}

function headerOf(
  { x402Version, written, resource }: Terms,
  { authorization, signature }: { authorization: Authorization; signature: Hex },
  deviation: Deviation,
): Record<string, string> {
  const payload = { signature, authorization: authorizationJson(authorization) };
  if (x402Version === 1) {
    const { scheme, network } = { ...written, ...deviation.accepted };
    return { "X-PAYMENT": encodeHeader({ x402Version, scheme, network, payload }) };
  }
  const accepted = { ...written, ...deviation.accepted };
  const sold = deviation.resource ?? resource;
  const { identifier: id } = deviation;
  const extensions = id && { [paymentIdentifierExtension]: { info: { required: false, id } } };
  return {
    "PAYMENT-SIGNATURE": encodeHeader({ x402Version, resource: sold, accepted, payload, extensions }),
  };
}
