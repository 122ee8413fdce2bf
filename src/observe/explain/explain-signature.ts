import { recoverSigner } from "../../chain/signing/recover.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationTypehashes,
  digestUnder,
} from "../../methods/exact-eip3009/authorization.ts";
import { exactPayloadSchema } from "../../methods/exact-eip3009/payload-schema.ts";
import { formatDomain, separatorOf } from "../../methods/exact-eip3009/signature-mistakes.ts";
import type { SignedDomain } from "../../methods/method.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import { type KnownTokens, knownToken } from "../../protocol/known-token.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import type { Network } from "../../protocol/networks.ts";
import { address, signature as signatureSchema, uint256String } from "../../protocol/primitives.ts";
import { isErc6492, readEcdsaSignature } from "../../protocol/signature.ts";
import { showValue } from "../../util/show-value.ts";
import { homeOf, otherDomains } from "./other-domains.ts";

const authorizationSchema = exactPayloadSchema.shape.authorization;

/**
 * Finds out what a signature was made for by trying common mistakes: another name, version, chain or token in the
 * domain, or values that were changed after signing.
 */
export function explainSignature(given: {
  authorization: Record<string, unknown>;
  signature: unknown;
  network: Network | undefined;
  /** The seller's requirements, since the payer may have signed for those and sent something else. */
  required: Record<string, unknown> | undefined;
  tokens?: KnownTokens | undefined;
}): Finding[] {
  const { network, required, tokens } = given;
  const at = "paymentPayload.payload.signature";
  const signature = signatureSchema.safeParse(given.signature);
  if (!signature.success) {
    return [
      finding("malformed-signature", at, {
        got: showValue(given.signature),
        expected: "65 bytes as hexadecimal after 0x",
      }),
    ];
  }
  if (isErc6492(signature.data)) return [finding("undeployed-wallet", at)];
  if (readEcdsaSignature(signature.data) === undefined) {
    const length = signature.data.length / 2 - 1;
    // Contract wallets often have longer signatures, which only the wallet can check.
    if (length > 65) return [];
    return [
      finding("malformed-signature", at, {
        got: `${length} bytes`,
        expected: "65 bytes with s in the lower half and v 27 or 28",
      }),
    ];
  }
  const parsed = authorizationSchema.safeParse(given.authorization);
  if (!parsed.success || network === undefined) return [];
  const authorization = parsed.data;
  const { from } = authorization;
  const signerOf = (domain: SignedDomain, messageHash: Hex) =>
    recoverSigner(digestUnder(separatorOf(domain), messageHash), signature.data);
  const isPayers = (domain: SignedDomain, messageHash: Hex) => {
    const signer = signerOf(domain, messageHash);
    return signer !== undefined && sameAddress(signer, from);
  };

  const right = { asset: assetOf(network, required, tokens), chainId: network.chainId };
  const signed = authorizationHash(authorization);
  const signer = signerOf(right, signed);
  if (signer !== undefined && sameAddress(signer, from)) return [];
  const received = authorizationHash(authorization, authorizationTypehashes.ReceiveWithAuthorization);
  if (isPayers(right, received)) return [finding("signed-receive", at)];
  for (const domain of otherDomains(network, right)) {
    if (!isPayers(domain, signed)) continue;
    return [
      finding("signed-with-another-domain", at, {
        got: `signed for ${formatDomain(domain)}${homeOf(domain, right)}`,
        expected: formatDomain(right),
      }),
    ];
  }
  for (const { changed, message } of otherValues(authorization, required)) {
    if (!isPayers(right, authorizationHash(message))) continue;
    return [
      finding("signed-other-values", `authorization.${changed}`, {
        got: `${authorization[changed]}`,
        expected: `${message[changed]}, which is what the payer signed`,
      }),
    ];
  }
  return [
    finding("signed-by-another-key", at, {
      ...(signer !== undefined && { got: `recovers to ${signer} for these values` }),
      expected: `the signature of ${from}`,
    }),
  ];
}

/** The token of the seller's requirements; one that is not known is taken for another USDC. */
function assetOf(
  network: Network,
  required: Record<string, unknown> | undefined,
  tokens: KnownTokens | undefined,
): SignedDomain["asset"] {
  const asset = address.safeParse(required?.asset);
  if (!asset.success) return network.usdc;
  return knownToken(network, asset.data, tokens) ?? { ...network.usdc, address: asset.data };
}

type Changed = "to" | "value" | "validAfter" | "validBefore";

/** Variants of the authorization, each with one member as it may have been signed. */
function otherValues(
  authorization: Authorization,
  required: Record<string, unknown> | undefined,
): { changed: Changed; message: Authorization }[] {
  const payTo = address.safeParse(required?.payTo);
  const amount = uint256String.safeParse(required?.maxAmountRequired ?? required?.amount);
  const { value, validAfter, validBefore } = authorization;
  const values = [...(amount.success ? [amount.data] : []), value * 1_000_000n, value / 1_000_000n];
  const times = (time: bigint) => [0n, time * 1_000n, time / 1_000n];
  return [
    ...(payTo.success ? [{ changed: "to" as const, message: { ...authorization, to: payTo.data } }] : []),
    ...values.map((other) => ({ changed: "value" as const, message: { ...authorization, value: other } })),
    ...times(validAfter).map((time) => ({
      changed: "validAfter" as const,
      message: { ...authorization, validAfter: time },
    })),
    ...times(validBefore).map((time) => ({
      changed: "validBefore" as const,
      message: { ...authorization, validBefore: time },
    })),
  ];
}
