import { create2Deployer } from "../../protocol/create2.ts";
import { checksumAddress, type Hex, isBytes32, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding } from "../../protocol/mistakes.ts";
import { builtInNetworks } from "../../protocol/networks.ts";
import {
  isErc6492,
  readEcdsaSignature,
  type SignedPayment,
  unwrapErc6492,
} from "../../protocol/signed-payment.ts";
import { plural } from "../../protocol/token-units.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import {
  domainOf,
  formatDifference,
  formatDomain,
  separatorOf,
  siblingTokens,
  type TriedDomain,
  wellKnownChains,
} from "../domains.ts";
import { digestUnder } from "../eip712.ts";
import { isSignedAsMessage } from "../explain-members.ts";
import type { MethodForPeople, SignatureContext } from "../for-people.ts";
import type { SignedDomain } from "../method.ts";
import {
  type Authorization,
  authorizationHash,
  authorizationJson,
  authorizationTypehashes,
} from "./authorization.ts";
import { authorizationOf, exactEip3009 } from "./eip3009-method.ts";
import { exactPayloadSchema } from "./eip3009-schemas.ts";
import { likelyDomains } from "./explain-eip3009.ts";

export const eip3009ForPeople: MethodForPeople = {
  names: [exactEip3009],
  label: "EIP-3009",
  option: "authorization",
  member: "authorization",

  nameOf({ from: payer, value, nonce }) {
    return { payer, value, nonce: isBytes32(nonce) ? nonce : undefined, nonceSpace: undefined };
  },

  explainSignature,

  payloadSchema: () => exactPayloadSchema,

  explainOffer(at, { extra }, { token }) {
    return explainExtra(at, extra, token);
  },

  example() {
    const account = `0x${"01".repeat(20)}`;
    const nonce = `0x${"01".repeat(32)}`;
    const authorization = {
      from: account,
      to: account,
      value: "1",
      validAfter: "0",
      validBefore: "1",
      nonce,
    };
    return { signature: "0x", authorization };
  },
};

/** Checks that the `extra` of requirements has the token's own name and version: clients sign for these values. */
export function explainExtra(
  at: string,
  extra: unknown,
  { name, version }: SignedDomain["asset"],
  mistake: "extra-differs" | "extra-needed-elsewhere" = "extra-differs",
): Finding[] {
  const named = membersOf(extra);
  if (named.name === name && named.version === version) return [];
  const given = extra === undefined ? extra : { name: named.name, version: named.version };
  return [
    finding(mistake, `${at}.extra`, {
      got: showValue(given),
      expected: JSON.stringify({ name, version }),
    }),
  ];
}

/**
 * Finds out what a signature was made for by trying common mistakes: another name, version, chain or token in the
 * domain, or values that were changed after signing.
 */
function explainSignature(
  payment: SignedPayment,
  { at, network, asset, requirements, recover }: SignatureContext,
): Finding[] {
  const { signature } = payment;
  if (isErc6492(signature)) {
    // If the facilitator calls this factory, as on local chains, only the chain can tell.
    const factory = unwrapErc6492(signature)?.factory;
    const isCalled = factory !== undefined && sameAddress(factory, create2Deployer);
    return isCalled ? [] : [finding("undeployed-wallet", at)];
  }
  if (readEcdsaSignature(signature) === undefined) {
    const length = signature.length / 2 - 1;
    // Contract wallets often have longer signatures, which only the wallet can check.
    if (length > 65) return [];
    const expected = "65 bytes with s in the lower half and v 27 or 28";
    return [finding("malformed-signature", at, { got: plural(length, "byte"), expected })];
  }
  const authorization = authorizationOf(payment);
  const { from } = authorization;
  const signerOf = (domain: TriedDomain, messageHash: Hex) =>
    recover(digestUnder(separatorOf(domain), messageHash), signature);
  const isPayers = (domain: TriedDomain, messageHash: Hex) => {
    const signer = signerOf(domain, messageHash);
    return signer !== undefined && sameAddress(signer, from);
  };

  const right = { asset, chainId: network.chainId };
  const signed = authorizationHash(authorization);
  const own = domainOf(right);
  const signer = signerOf(own, signed);
  if (signer !== undefined && sameAddress(signer, from)) return [];
  const received = authorizationHash(authorization, authorizationTypehashes.ReceiveWithAuthorization);
  if (isPayers(own, received)) return [finding("signed-receive", at)];
  const others = otherDomains(right, requirements.extra);
  for (const domain of others) {
    if (!isPayers(domain, signed)) continue;
    const got = `signed with ${formatDifference(domain, right)}`;
    return [finding("signed-with-another-domain", at, { got, expected: formatDomain(right) })];
  }
  for (const { changed, message } of otherValues(authorization, requirements)) {
    if (!isPayers(own, authorizationHash(message))) continue;
    const expected = `${message[changed]}, which is what the payer signed`;
    const facts = { got: `${authorization[changed]}`, expected };
    return [finding("signed-other-values", `authorization.${changed}`, facts)];
  }
  const texts = [digestUnder(separatorOf(own), signed), JSON.stringify(authorizationJson(authorization))];
  if (isSignedAsMessage(texts, (digest) => recover(digest, signature), from)) {
    return [finding("signed-as-message", at)];
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

type Changed = "to" | "value" | "validAfter" | "validBefore";

/** Variants of the authorization, each with one field changed to a value that may have been signed. */
function otherValues(
  authorization: Authorization,
  { payTo, amount }: SignatureContext["requirements"],
): { changed: Changed; message: Authorization }[] {
  const { value, validAfter, validBefore } = authorization;
  const values = [amount, value * 1_000_000n, value / 1_000_000n];
  const times = (time: bigint) => [0n, time * 1_000n, time / 1_000n];
  const variants = <Name extends Changed>(changed: Name, signed: readonly Authorization[Name][]) =>
    signed.map((one) => ({ changed, message: { ...authorization, [changed]: one } }));
  return [
    ...variants("to", payTo === undefined ? [] : [payTo]),
    ...variants("value", values),
    ...variants("validAfter", times(validAfter)),
    ...variants("validBefore", times(validBefore)),
  ];
}

/** Names and versions of USDC and similar tokens. */
const names = ["USD Coin", "USDC", "USD Coin (PoS)", "Bridged USDC", "USD Base Coin"];
const versions = ["2", "1"];

/**
 * The domains that a payer may have signed for by mistake, the most likely first, because the first match is reported: those
 * that the service tries, then others. About 100, because each costs a recovery of 0.06 ms; there are thousands of
 * combinations.
 *
 * @param extra the `extra` of the requirements, which clients sign for
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
    // This token with another name or version.
    ...versions.flatMap((version) => names.map((name) => ({ ...domain, name, version }))),
    // The network's own token, if the payment is in another one.
    ...(own === undefined
      ? []
      : [domainOf({ asset: own, chainId }), { ...domain, verifyingContract: own.address }]),
    ...others.flatMap(({ usdc, chainId: otherChain }) => [
      // Another network's whole domain, perhaps with a wrong name or version.
      ...names.map((name) => domainOf({ asset: { ...usdc, name }, chainId: otherChain })),
      ...versions.map((version) => domainOf({ asset: { ...usdc, version }, chainId: otherChain })),
      // Its token on this chain, with its own name or this token's; and this token on its chain.
      domainOf({ asset: usdc, chainId }),
      { ...domain, verifyingContract: usdc.address },
      domainOf({ asset: { ...usdc, address: asset.address }, chainId: otherChain }),
    ]),
    ...Array.from(wellKnownChains.keys(), (other) => ({ ...domain, chainId: other })),
    ...siblingTokens.map(({ address: verifyingContract }) => ({ ...domain, verifyingContract })),
    // Domains with a single field, as some libraries build them.
    { name: domain.name },
    { chainId: domain.chainId },
    { verifyingContract: domain.verifyingContract },
  ];
  const right712 = separatorOf(domain);
  const bySeparator = new Map(all.toReversed().map((one) => [separatorOf(one), one]));
  bySeparator.delete(right712);
  return [...bySeparator.values()].toReversed();
}
