import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import {
  domainOf,
  formatDifference,
  formatDomain,
  separatorOf,
  siblingTokens,
  type TriedDomain,
  wellKnownChains,
} from "../../methods/domains.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationTypehashes,
} from "../../methods/exact-eip3009/authorization.ts";
import { exactPayloadSchema } from "../../methods/exact-eip3009/eip3009-schemas.ts";
import { likelyDomains } from "../../methods/exact-eip3009/explain-eip3009.ts";
import { describeMalformed, digestUnder, type SignedDomain } from "../../methods/method.ts";
import { likelyMistakes } from "../../methods/permit2/explain-permit2.ts";
import {
  exactProxyAddress,
  type Permit,
  permit2Separator,
  permitHash,
  uptoProxyAddress,
} from "../../methods/permit2/permit.ts";
import { permitMember, permitOf, readPermitPayload } from "../../methods/permit2/permit2-payload.ts";
import { create2Deployer } from "../../protocol/create2.ts";
import { type Address, checksumAddress, type Hex, isAddress, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import { builtInNetworks, type Network } from "../../protocol/networks.ts";
import { address, signature as signatureSchema, uint256String } from "../../protocol/primitives.ts";
import { isErc6492, readEcdsaSignature, unwrapErc6492 } from "../../protocol/signed-payment.ts";
import { type KnownTokens, knownToken, plural } from "../../protocol/token-units.ts";
import { MalformedError } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
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
    return [finding("malformed-signature", at, { got: plural(length, "byte"), expected })];
  }
  const parsed = authorizationSchema.safeParse(given.authorization);
  if (!parsed.success || network === undefined) return [];
  const authorization = parsed.data;
  const { from } = authorization;
  const signerOf = (domain: TriedDomain, messageHash: Hex) =>
    recoverSigner(digestUnder(separatorOf(domain), messageHash), signature.data);
  const isPayers = (domain: TriedDomain, messageHash: Hex) => {
    const signer = signerOf(domain, messageHash);
    return signer !== undefined && sameAddress(signer, from);
  };

  const right = { asset: assetOf(network, required, tokens), chainId: network.chainId };
  const signed = authorizationHash(authorization);
  const own = domainOf(right);
  const signer = signerOf(own, signed);
  if (signer !== undefined && sameAddress(signer, from)) return [];
  const received = authorizationHash(authorization, authorizationTypehashes.ReceiveWithAuthorization);
  if (isPayers(own, received)) return [finding("signed-receive", at)];
  const others = otherDomains(right, required?.extra);
  for (const domain of others) {
    if (!isPayers(domain, signed)) continue;
    const got = `signed with ${formatDifference(domain, right)}`;
    return [finding("signed-with-another-domain", at, { got, expected: formatDomain(right) })];
  }
  for (const { changed, message } of otherValues(authorization, required)) {
    if (!isPayers(own, authorizationHash(message))) continue;
    const expected = `${message[changed]}, which is what the payer signed`;
    const facts = { got: `${authorization[changed]}`, expected };
    return [finding("signed-other-values", `authorization.${changed}`, facts)];
  }
  return [
    finding("signed-by-another-key", at, {
      ...(signer !== undefined && {
        got: `recovers to ${checksumAddress(signer)} for these values; ${others.length} other domains were tried`,
      }),
      expected: `the signature of ${from} for ${formatDomain(right)}`,
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
 * The domains that a payer may have signed for by mistake, the likeliest first, because the first match is reported: those
 * that the service tries, and then others. Some 100: each costs a recovery of 0.06 ms, and all combinations would be thousands.
 *
 * @param extra of the requirements, by which clients sign
 */
export function otherDomains(right: SignedDomain, extra?: unknown): readonly TriedDomain[] {
  const { asset, chainId } = right;
  const domain = domainOf(right);
  const others = builtInNetworks.all.filter((network) => network.chainId !== chainId);
  const own = builtInNetworks.ofChain(chainId)?.usdc;
  const { name, version } = membersOf(extra);
  const all: readonly TriedDomain[] = [
    ...(typeof name === "string" && typeof version === "string" ? [{ ...domain, name, version }] : []),
    ...likelyDomains(right),
    // This token by another name or version.
    ...versions.flatMap((version) => names.map((name) => ({ ...domain, name, version }))),
    // The network's own token where another is asked for.
    ...(own === undefined
      ? []
      : [domainOf({ asset: own, chainId }), { ...domain, verifyingContract: own.address }]),
    ...others.flatMap(({ usdc, chainId: otherChain }) => [
      // All of another network, perhaps by one wrong name or version.
      ...names.map((name) => domainOf({ asset: { ...usdc, name }, chainId: otherChain })),
      ...versions.map((version) => domainOf({ asset: { ...usdc, version }, chainId: otherChain })),
      // Its token on this chain, by its own name or this token's, and this token on its chain.
      domainOf({ asset: usdc, chainId }),
      { ...domain, verifyingContract: usdc.address },
      domainOf({ asset: { ...usdc, address: asset.address }, chainId: otherChain }),
    ]),
    ...Array.from(wellKnownChains.keys(), (other) => ({ ...domain, chainId: other })),
    ...siblingTokens.map(({ address: verifyingContract }) => ({ ...domain, verifyingContract })),
    // What libraries make of a domain with one member alone.
    { name: domain.name },
    { chainId: domain.chainId },
    { verifyingContract: domain.verifyingContract },
  ];
  const right712 = separatorOf(domain);
  const bySeparator = new Map(all.toReversed().map((one) => [separatorOf(one), one]));
  bySeparator.delete(right712);
  return [...bySeparator.values()].toReversed();
}

/** Requirements, as they came. */
type Asked = Record<string, unknown>;

/** Returns true if an offer is to be paid by Permit2, so that clients sign for its domain and not for the token's. */
export function isOfPermit2({ scheme, extra }: Asked): boolean {
  return scheme === "upto" || membersOf(extra).assetTransferMethod === "permit2";
}

/** What in a permit names another party than is asked for: the spender, the token, and who submits it. */
export function explainPermit(
  permit: Record<string, unknown>,
  { asked, contract }: { asked: Asked | undefined; contract: Address | undefined },
): Finding[] {
  const { spender, permitted, witness } = permit;
  const { facilitator } = membersOf(witness);
  const isUpto = asked?.scheme === "upto";
  const proxy = isUpto ? uptoProxyAddress : exactProxyAddress;
  const wanted = { spender: proxy, token: asked?.asset, facilitator: contract };
  return [
    ...explainAddress("permit-spender", "spender", spender, wanted.spender),
    ...explainAddress("permit-token", "permitted.token", membersOf(permitted).token, wanted.token),
    ...(isUpto
      ? explainAddress("permit-facilitator", "witness.facilitator", facilitator, wanted.facilitator)
      : []),
  ];
}

function explainAddress(
  mistake: "permit-spender" | "permit-token" | "permit-facilitator",
  member: string,
  value: unknown,
  wanted: unknown,
): Finding[] {
  const at = `${permitMember}.${member}`;
  if (!isAddress(value)) {
    return [finding("missing-member", at, { got: showValue(value), expected: "an address" })];
  }
  if (!isAddress(wanted) || sameAddress(value, wanted)) return [];
  return [finding(mistake, at, { got: value, expected: wanted })];
}

/** What the signature of a permit was made for, where it is not the payer's for what is sent. */
export function explainPermitSignature(
  payload: Record<string, unknown>,
  {
    asked,
    network,
    tokens,
  }: { asked: Asked | undefined; network: Network | undefined; tokens?: KnownTokens | undefined },
): Finding[] {
  const at = "paymentPayload.payload.signature";
  const given = signatureSchema.safeParse(payload.signature);
  if (!given.success) {
    const facts = { got: showValue(payload.signature), expected: "65 bytes as hexadecimal after 0x" };
    return [finding("malformed-signature", at, facts)];
  }
  const read = readPermit(payload, { hasFacilitator: asked?.scheme === "upto" });
  if (read === undefined || network === undefined) return [];
  const { permit, signature } = read;
  if (isErc6492(signature)) return [finding("undeployed-wallet", at)];
  const malformed = describeMalformed(signature);
  if (malformed !== undefined) {
    // Contract wallets often have longer signatures, which only the wallet can check.
    if (signature.length / 2 - 1 > 65) return [];
    return [finding("malformed-signature", at, { got: showValue(signature), expected: "65 bytes" })];
  }
  const { chainId } = network;
  const digest = digestUnder(permit2Separator(chainId), permitHash(permit));
  const signer = recoverSigner(digest, signature);
  if (signer !== undefined && sameAddress(signer, permit.from)) return [];
  const asset = knownToken(network, permit.token, tokens) ?? { ...network.usdc, address: permit.token };
  for (const { mistake, instead, digest } of likelyMistakes(permit, { asset, chainId })) {
    const signer = recoverSigner(digest, signature);
    if (signer !== undefined && sameAddress(signer, permit.from))
      return [finding(mistake, at, { got: `signed for ${instead}` })];
  }
  return [
    finding("permit-signer", at, {
      ...(signer !== undefined && { got: `recovers to ${signer} for these values` }),
      expected: `the signature of ${permit.from}`,
    }),
  ];
}

function readPermit(
  payload: Record<string, unknown>,
  kind: { hasFacilitator: boolean },
): { permit: Permit; signature: Hex } | undefined {
  try {
    const payment = readPermitPayload({ value: payload, path: "paymentPayload.payload" }, kind);
    return { permit: permitOf(payment), signature: payment.signature };
  } catch (error) {
    // What is malformed is said elsewhere, member by member.
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
}

/** What in an offer makes every permit for it fail. Clients sign for the facilitator that it names. */
export function explainPermitOffer(at: string, { scheme, extra }: Asked, contract: Address): Finding[] {
  const { facilitatorAddress } = membersOf(extra);
  if (scheme !== "upto" || (isAddress(facilitatorAddress) && sameAddress(facilitatorAddress, contract)))
    return [];
  const facts = { got: showValue(facilitatorAddress), expected: contract };
  return [finding("permit-facilitator", `${at}.extra.facilitatorAddress`, facts)];
}
