import { checksumAddress, type Hex, sameAddress } from "../../protocol/hex.ts";
import { signatureAdvice } from "../../protocol/mistakes.ts";
import { networkNames, networks } from "../../protocol/networks.ts";
import { advice } from "../../protocol/refusals.ts";
import { describeMalformed } from "../describe-malformed.ts";
import {
  domainOf,
  formatDifference,
  memberNames,
  separatorOf,
  siblingTokens,
  type TriedDomain,
  wellKnownChains,
} from "../domains.ts";
import { digestUnder } from "../eip712.ts";
import type { Recover, SignedDomain, SignedMember } from "../method.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationJson,
  authorizationTypehashes,
} from "./authorization.ts";

/**
 * Guesses the domain that a wrong signature (by an account without code) was made for, and how to fix it. The service does
 * this for each payment that it refuses, so it tries only {@link likelyDomains}: at most 24 recoveries of about 0.06 ms
 * each, or 3 ms without native code. `explain` and the studio try about 100: see decision 0042.
 */
export async function describeWrongSignature(
  { authorization, signature }: { authorization: Authorization; signature: Hex },
  right: SignedDomain,
  recover: Recover,
): Promise<string> {
  const malformed = describeMalformed(signature);
  if (malformed !== undefined) return `${malformed}${signatureAdvice["malformed-signature"]}`;
  const isPayers = async (digest: Hex) => {
    const signer = await recover(digest, signature);
    return signer !== undefined && sameAddress(signer, authorization.from);
  };
  const own = separatorOf(domainOf(right));
  const received = authorizationHash(authorization, authorizationTypehashes.ReceiveWithAuthorization);
  if (await isPayers(digestUnder(own, received))) return signatureAdvice["signed-receive"];
  const signed = authorizationHash(authorization);
  const likely = likelyDomains(right);
  for (const domain of likely) {
    if (!(await isPayers(digestUnder(separatorOf(domain), signed)))) continue;
    return `It was signed with ${formatDifference(domain, right)}. ${signatureAdvice["signed-with-another-domain"]}`;
  }
  const signer = await recover(digestUnder(own, signed), signature);
  return signer === undefined
    ? signatureAdvice["malformed-signature"]
    : `For these values it is the signature of ${checksumAddress(signer)}; ${likely.length} other domains were tried. ${advice["signed-by-another-key"]}`;
}

/** The number of well-known chains that the service tries. */
const likelyChains = 4;

/**
 * The domains that the service tries, the most likely first, at most 22: the token with USDC's other name or version 1,
 * another network's whole domain, another chain, each field left out, and tokens that are mistaken for this one.
 */
export function likelyDomains(right: SignedDomain): readonly TriedDomain[] {
  const { asset, chainId } = right;
  const domain = domainOf(right);
  const others = networkNames.map((name) => networks[name]).filter((network) => network.chainId !== chainId);
  const otherName = asset.name === "USDC" ? "USD Coin" : "USDC";
  return [
    { ...domain, name: otherName },
    { ...domain, version: asset.version === "2" ? "1" : "2" },
    { ...domain, name: otherName, version: "1" },
    ...others.map((other) => ({ ...domain, chainId: other.chainId })),
    ...Array.from(wellKnownChains.keys())
      .slice(0, likelyChains)
      .map((other) => ({ ...domain, chainId: other })),
    ...others.map(({ usdc, chainId: other }) => domainOf({ asset: usdc, chainId: other })),
    ...memberNames.map((member) => ({ ...domain, [member]: undefined })),
    // Clients sign this for an offer without `extra`.
    { ...domain, name: undefined, version: undefined },
    ...siblingsOf(right),
  ];
}

/** The tokens on the same chain that are mistaken for this one. */
function siblingsOf(right: SignedDomain): readonly TriedDomain[] {
  const { asset, chainId } = right;
  return siblingTokens
    .filter((token) => token.chainId === chainId && !sameAddress(token.address, asset.address))
    .map(({ address: verifyingContract }) => ({ ...domainOf(right), verifyingContract }));
}

const kinds: Readonly<Record<keyof Authorization, SignedMember["kind"]>> = {
  from: "other",
  to: "recipient",
  value: "amount",
  validAfter: "time",
  validBefore: "time",
  nonce: "other",
};

/** The fields of an authorization with their EIP-3009 names, in signing order. */
export function describeAuthorization(authorization: Authorization): readonly SignedMember[] {
  const written = authorizationJson(authorization);
  return (Object.keys(kinds) as (keyof Authorization)[]).map((label) => ({
    label,
    value: written[label],
    kind: kinds[label],
  }));
}
