import { checksumAddress, type Hex, sameAddress } from "../../protocol/hex.ts";
import { signatureAdvice } from "../../protocol/mistakes.ts";
import { networkNames, networks } from "../../protocol/networks.ts";
import { advice } from "../../protocol/refusals.ts";
import {
  describeMalformed,
  digestUnder,
  type Recover,
  type SignedDomain,
  type SignedMember,
} from "../method.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationTypehashes,
  domainSeparator,
} from "./authorization.ts";
import { authorizationJson } from "./eip3009-payload.ts";

/**
 * What a signature of an account without code, which is not the payer's, was probably made for, and what to change.
 * Tries only the usual mistakes, with at most ten recoveries of some 0.06 ms, since the service does this for each
 * payment that it refuses.
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
  const own = separatorOf(right);
  const received = authorizationHash(authorization, authorizationTypehashes.ReceiveWithAuthorization);
  if (await isPayers(digestUnder(own, received))) return signatureAdvice["signed-receive"];
  const signed = authorizationHash(authorization);
  for (const domain of likelyDomains(right)) {
    if (!(await isPayers(digestUnder(separatorOf(domain), signed)))) continue;
    return `It was signed for ${formatDomain(domain)}. ${signatureAdvice["signed-with-another-domain"]}`;
  }
  const signer = await recover(digestUnder(own, signed), signature);
  return signer === undefined
    ? signatureAdvice["malformed-signature"]
    : `For these values it is the signature of ${checksumAddress(signer)}. ${advice["signed-by-another-key"]}`;
}

/** Separators of domains that were tried: the same few for every payment, or a flood of made-up ones. */
const separators = new Map<string, Hex>();

/** The domain separator of a domain; computed once for each, because its hashes take a fifth of a recovery. */
export function separatorOf({ asset, chainId }: SignedDomain): Hex {
  const key = JSON.stringify([asset.name, asset.version, asset.address, chainId]);
  const separator = separators.get(key) ?? domainSeparator(asset, chainId);
  if (separators.size > 999) separators.clear();
  separators.set(key, separator);
  return separator;
}

/** A domain as messages show it. */
export function formatDomain({ asset: { name, version, address }, chainId }: SignedDomain): string {
  return `name "${name}", version "${version}", chain ${chainId}, token ${address}`;
}

/**
 * The token by the other name of USDC or version 1, or with the chain id of the same network's other tier, and the tokens of the
 * other networks.
 */
function likelyDomains({ asset, chainId }: SignedDomain): SignedDomain[] {
  const others = networkNames.map((name) => networks[name]).filter((network) => network.chainId !== chainId);
  const family = (id: number) => networkNames.find((name) => networks[name].chainId === id)?.split("-")[0];
  const otherTiers = others.filter((other) => family(other.chainId) === family(chainId));
  const otherName = asset.name === "USDC" ? "USD Coin" : "USDC";
  return [
    { asset: { ...asset, name: otherName }, chainId },
    { asset: { ...asset, version: asset.version === "2" ? "1" : "2" }, chainId },
    { asset: { ...asset, name: otherName, version: "1" }, chainId },
    ...otherTiers.map((other) => ({ asset, chainId: other.chainId })),
    ...others.map(({ usdc, chainId }) => ({ asset: usdc, chainId })),
  ];
}

const kinds: Readonly<Record<keyof Authorization, SignedMember["kind"]>> = {
  from: "other",
  to: "recipient",
  value: "amount",
  validAfter: "time",
  validBefore: "time",
  nonce: "other",
};

/** The members of an authorization by the names that EIP-3009 gives them, in the order in which they are signed. */
export function describeAuthorization(authorization: Authorization): readonly SignedMember[] {
  const written = authorizationJson(authorization);
  return (Object.keys(kinds) as (keyof Authorization)[]).map((label) => ({
    label,
    value: written[label],
    kind: kinds[label],
  }));
}
