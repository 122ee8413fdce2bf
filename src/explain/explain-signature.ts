import { recoverSigner } from "../chain/signing/recover.ts";
import {
  type Authorization,
  authorizationDigest,
  authorizationTypehashes,
  domainSeparator,
} from "../protocol/authorization.ts";
import { sameAddress } from "../protocol/hex.ts";
import { type KnownTokens, knownToken } from "../protocol/known-token.ts";
import { type Finding, finding } from "../protocol/mistakes.ts";
import { builtInNetworks, type Network } from "../protocol/networks.ts";
import { address, signature as signatureSchema, uint256String } from "../protocol/primitives.ts";
import { exactPayloadSchema } from "../protocol/request-schemas.ts";
import { isErc6492, readEcdsaSignature } from "../protocol/signature.ts";
import { formatDomain, type SignedDomain } from "../protocol/signature-mistakes.ts";
import { showValue } from "../util/show-value.ts";

const authorizationSchema = exactPayloadSchema.shape.authorization;

/** A domain that the payment may have been signed for, and its difference from the right one. */
type Trial = SignedDomain & { where: string };

/** Names and versions of USDC and similar tokens. */
const domainNames = ["USD Coin", "USDC", "USD Coin (PoS)", "Bridged USDC", "USD Base Coin"];
const domainVersions = ["2", "1"];

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
  const signerOf = ({ asset, chainId }: Trial, message: Authorization) =>
    recoverSigner(authorizationDigest(domainSeparator(asset, chainId), message), signature.data);
  const isPayers = (trial: Trial, message: Authorization) => {
    const signer = signerOf(trial, message);
    return signer !== undefined && sameAddress(signer, from);
  };

  const right: Trial = {
    asset: assetOf(network, required, tokens),
    chainId: network.chainId,
    where: network.name,
  };
  if (isPayers(right, authorization)) return [];
  const asReceive = recoverSigner(
    authorizationDigest(
      domainSeparator(right.asset, right.chainId),
      authorization,
      authorizationTypehashes.ReceiveWithAuthorization,
    ),
    signature.data,
  );
  if (asReceive !== undefined && sameAddress(asReceive, from)) return [finding("signed-receive", at)];
  for (const trial of otherDomains(network, right)) {
    if (!isPayers(trial, authorization)) continue;
    return [
      finding("signed-with-another-domain", at, {
        got: `signed for ${formatDomain(trial)}${trial.where}`,
        expected: formatDomain(right),
      }),
    ];
  }
  for (const { changed, message } of otherValues(authorization, required)) {
    if (!isPayers(right, message)) continue;
    return [
      finding("signed-other-values", `authorization.${changed}`, {
        got: `${authorization[changed]}`,
        expected: `${message[changed]}, which is what the payer signed`,
      }),
    ];
  }
  const signer = signerOf(right, authorization);
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
): Trial["asset"] {
  const asset = address.safeParse(required?.asset);
  if (!asset.success) return network.usdc;
  return knownToken(network, asset.data, tokens) ?? { ...network.usdc, address: asset.data };
}

function otherDomains(network: Network, right: Trial): Trial[] {
  const all = [...builtInNetworks.all.filter(({ name }) => name !== network.name), network];
  const tokens = [
    { address: right.asset.address, home: undefined },
    ...all.map(({ usdc, name }) => ({ address: usdc.address, home: name })),
  ];
  // Domains with the fewest differences first, because the first match is reported.
  const names = new Set([right.asset.name, ...domainNames]);
  const versions = new Set([right.asset.version, ...domainVersions]);
  return all
    .toSorted((a, b) => Number(b === network) - Number(a === network))
    .flatMap(({ chainId }) =>
      tokens.flatMap((token) =>
        [...versions].flatMap((version) =>
          [...names].map((name) => ({
            asset: { name, version, address: token.address },
            chainId,
            where: token.home === undefined || token.home === network.name ? "" : ` (USDC on ${token.home})`,
          })),
        ),
      ),
    );
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
