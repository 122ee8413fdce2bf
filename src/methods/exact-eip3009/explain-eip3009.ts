import {
  type Address,
  addressWord,
  checksumAddress,
  type Hex,
  keccak256,
  keccak256Text,
  sameAddress,
  uintWord,
} from "../../protocol/hex.ts";
import { signatureAdvice } from "../../protocol/mistakes.ts";
import { builtInNetworks, networkNames, networks } from "../../protocol/networks.ts";
import { advice } from "../../protocol/refusals.ts";
import {
  describeMalformed,
  digestUnder,
  type Recover,
  type SignedDomain,
  type SignedMember,
} from "../method.ts";
import { siblingTokens, wellKnownChains } from "../well-known-domains.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationJson,
  authorizationTypehashes,
} from "./authorization.ts";

/** A domain that a payer may have signed for (EIP-712). A member that is undefined was left out. */
export type TriedDomain = {
  name?: string | undefined;
  version?: string | undefined;
  chainId?: number | undefined;
  verifyingContract?: Address | undefined;
};

/** The members of a domain in the order in which EIP-712 hashes them, each as one word. */
const members = {
  name: { type: "string", word: (text: string) => keccak256Text(text).slice(2) },
  version: { type: "string", word: (text: string) => keccak256Text(text).slice(2) },
  chainId: { type: "uint256", word: (id: number) => uintWord(BigInt(id)) },
  verifyingContract: { type: "address", word: addressWord },
} as const;

/** The domain of a token on a chain. */
export function domainOf({ asset: { name, version, address }, chainId }: SignedDomain): TriedDomain {
  return { name, version, chainId, verifyingContract: address };
}

/**
 * What a signature of an account without code, which is not the payer's, was probably made for, and what to change. The
 * service asks it for each payment that it refuses: it tries {@link likelyDomains} and no more, at most 24 recoveries of some
 * 0.06 ms, or 3 ms where there is no native code for them. `explain` and the studio, which a person asks, try some 100: see decision 0042.
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

/** Separators of domains that were tried: the same few for every payment, or a flood of made-up ones. */
const separators = new Map<string, Hex>();

/** The domain separator of a domain; computed once for each, because its hashes take a fifth of a recovery. */
export function separatorOf({ name, version, chainId, verifyingContract }: TriedDomain): Hex {
  const key = JSON.stringify([name ?? null, version ?? null, chainId ?? null, verifyingContract ?? null]);
  const known = separators.get(key);
  if (known !== undefined) return known;
  const word = <T>(member: { word: (value: T) => string }, value: T | undefined) =>
    value === undefined ? "" : member.word(value);
  const given = { name, version, chainId, verifyingContract };
  const names = memberNames.filter((member) => given[member] !== undefined);
  const type = names.map((member) => `${members[member].type} ${member}`).join(",");
  const words = [
    word(members.name, name),
    word(members.version, version),
    word(members.chainId, chainId),
    word(members.verifyingContract, verifyingContract),
  ];
  const separator = keccak256(`${keccak256Text(`EIP712Domain(${type})`)}${words.join("")}`);
  if (separators.size > 999) separators.clear();
  separators.set(key, separator);
  return separator;
}

const memberNames = ["name", "version", "chainId", "verifyingContract"] as const;

/** A domain as messages show it. */
export function formatDomain({ asset: { name, version, address }, chainId }: SignedDomain): string {
  return `name "${name}", version "${version}", chainId ${chainId}, verifyingContract ${address}`;
}

/** What a domain has otherwise than the right one: `chainId 1 (Ethereum) instead of 8453`. */
export function formatDifference(domain: TriedDomain, right: SignedDomain): string {
  const wanted = domainOf(right);
  return memberNames
    .filter((member) => String(domain[member]).toLowerCase() !== String(wanted[member]).toLowerCase())
    .map((member) =>
      domain[member] === undefined
        ? `no ${member} instead of ${member} ${formatMember(wanted, member)}`
        : `${member} ${formatMember(domain, member)}${nameOf(domain, member)} instead of ${formatMember(wanted, member)}`,
    )
    .join(", ");
}

function formatMember(domain: TriedDomain, member: (typeof memberNames)[number]): string {
  const value = domain[member];
  return members[member].type === "string" ? JSON.stringify(value) : String(value);
}

/** What a chain or a token is called, in brackets; nothing of one that is not known. */
function nameOf({ chainId, verifyingContract }: TriedDomain, member: (typeof memberNames)[number]): string {
  if (member === "chainId" && chainId !== undefined) {
    const name = chainName(chainId);
    return name === undefined ? "" : ` (${name})`;
  }
  if (member !== "verifyingContract" || verifyingContract === undefined) return "";
  const sibling = siblingTokens.find(({ address }) => sameAddress(address, verifyingContract));
  if (sibling !== undefined) return ` (${sibling.symbol} on ${chainName(sibling.chainId)})`;
  const home = builtInNetworks.all.find(({ usdc }) => sameAddress(usdc.address, verifyingContract));
  return home === undefined ? "" : ` (USDC on ${home.name})`;
}

function chainName(chainId: number): string | undefined {
  return builtInNetworks.ofChain(chainId)?.name ?? wellKnownChains.get(chainId);
}

/** So many of the well-known chains are tried in a service. */
const likelyChains = 4;

/**
 * The domains that the service tries, the likeliest first, at most 22: the token by the other name of USDC or version 1, all
 * of another network, another chain, each member left out, and a token that is taken for this one.
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
    ...[...wellKnownChains.keys()].slice(0, likelyChains).map((other) => ({ ...domain, chainId: other })),
    ...others.map(({ usdc, chainId: other }) => domainOf({ asset: usdc, chainId: other })),
    ...memberNames.map((member) => ({ ...domain, [member]: undefined })),
    // What clients sign of an offer without `extra`.
    { ...domain, name: undefined, version: undefined },
    ...siblingsOf(right),
  ];
}

/** The tokens of the same chain that are taken for this one. */
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

/** The members of an authorization by the names that EIP-3009 gives them, in the order in which they are signed. */
export function describeAuthorization(authorization: Authorization): readonly SignedMember[] {
  const written = authorizationJson(authorization);
  return (Object.keys(kinds) as (keyof Authorization)[]).map((label) => ({
    label,
    value: written[label],
    kind: kinds[label],
  }));
}
