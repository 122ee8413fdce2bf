import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationTypehashes,
} from "../../methods/exact-eip3009/authorization.ts";
import { exactPayloadSchema } from "../../methods/exact-eip3009/eip3009-schemas.ts";
import { formatDomain, separatorOf } from "../../methods/exact-eip3009/explain-eip3009.ts";
import { digestUnder, type SignedDomain } from "../../methods/method.ts";
import { create2Deployer } from "../../protocol/create2.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import { builtInNetworks, type Network } from "../../protocol/networks.ts";
import { address, signature as signatureSchema, uint256String } from "../../protocol/primitives.ts";
import { isErc6492, readEcdsaSignature, unwrapErc6492 } from "../../protocol/signed-payment.ts";
import { type KnownTokens, knownToken } from "../../protocol/token-units.ts";
import { showValue } from "../../util/text.ts";

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
    const facts = { got: showValue(given.signature), expected: "65 bytes as hexadecimal after 0x" };
    return [finding("malformed-signature", at, facts)];
  }
  if (isErc6492(signature.data)) {
    // What only the chain can say, where the facilitator calls the factory, as on local chains.
    const factory = unwrapErc6492(signature.data)?.factory;
    const isCalled = factory !== undefined && sameAddress(factory, create2Deployer);
    return isCalled ? [] : [finding("undeployed-wallet", at)];
  }
  if (readEcdsaSignature(signature.data) === undefined) {
    const length = signature.data.length / 2 - 1;
    // Contract wallets often have longer signatures, which only the wallet can check.
    if (length > 65) return [];
    const expected = "65 bytes with s in the lower half and v 27 or 28";
    return [finding("malformed-signature", at, { got: `${length} bytes`, expected })];
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
    const got = `signed for ${formatDomain(domain)}${homeOf(domain, right)}`;
    return [finding("signed-with-another-domain", at, { got, expected: formatDomain(right) })];
  }
  for (const { changed, message } of otherValues(authorization, required)) {
    if (!isPayers(right, authorizationHash(message))) continue;
    const expected = `${message[changed]}, which is what the payer signed`;
    const facts = { got: `${authorization[changed]}`, expected };
    return [finding("signed-other-values", `authorization.${changed}`, facts)];
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
  const variants = <Name extends Changed>(changed: Name, signed: readonly Authorization[Name][]) =>
    signed.map((one) => ({ changed, message: { ...authorization, [changed]: one } }));
  return [
    ...variants("to", payTo.success ? [payTo.data] : []),
    ...variants("value", values),
    ...variants("validAfter", times(validAfter)),
    ...variants("validBefore", times(validBefore)),
  ];
}

/** Names and versions of USDC and similar tokens. */
const names = ["USD Coin", "USDC", "USD Coin (PoS)", "Bridged USDC", "USD Base Coin"];
const versions = ["2", "1"];

/**
 * The domains that a payer may have signed for by mistake, the likeliest first, because the first match is reported. Some
 * forty: each costs a recovery, and all combinations would be hundreds.
 */
export function otherDomains(network: Network, right: SignedDomain): SignedDomain[] {
  const { asset, chainId } = right;
  const others = builtInNetworks.all.filter(({ name }) => name !== network.name);
  return [
    // This token by another name or version.
    ...namesAndVersions(asset).map((named) => ({ asset: named, chainId })),
    // The network's own token where another is asked for.
    ...(sameAddress(asset.address, network.usdc.address) ? [] : tokensNamed(network.usdc, asset, chainId)),
    ...others.flatMap(({ usdc, chainId: otherChain }) => [
      // All of another network, perhaps by one wrong name or version.
      { asset: usdc, chainId: otherChain },
      ...names
        .filter((name) => name !== usdc.name)
        .map((name) => ({ asset: { ...usdc, name }, chainId: otherChain })),
      ...versions
        .filter((version) => version !== usdc.version)
        .map((version) => ({ asset: { ...usdc, version }, chainId: otherChain })),
      // Its token on this chain, and this token on its chain.
      ...tokensNamed(usdc, asset, chainId),
      ...tokensNamed(asset, usdc, otherChain),
    ]),
  ];
}

function namesAndVersions(asset: SignedDomain["asset"]): SignedDomain["asset"][] {
  return [...new Set([asset.version, ...versions])]
    .flatMap((version) =>
      [...new Set([asset.name, ...names])].map((name) => ({ address: asset.address, name, version })),
    )
    .filter(({ name, version }) => name !== asset.name || version !== asset.version);
}

/** A token on a chain by its own name and version, and by those of another. */
function tokensNamed(
  token: SignedDomain["asset"],
  other: SignedDomain["asset"],
  chainId: number,
): SignedDomain[] {
  const { name, version } = other;
  const isSame = token.name === name && token.version === version;
  return [
    { asset: token, chainId },
    ...(isSame ? [] : [{ asset: { address: token.address, name, version }, chainId }]),
  ];
}

/** Whose token a domain has, where it is another network's: ` (USDC on optimism)`. */
function homeOf(domain: SignedDomain, right: SignedDomain): string {
  if (sameAddress(domain.asset.address, right.asset.address)) return "";
  const home = builtInNetworks.all.find(({ usdc }) => sameAddress(usdc.address, domain.asset.address));
  return home === undefined || home.chainId === right.chainId ? "" : ` (USDC on ${home.name})`;
}
