import {
  addressWord,
  checksumAddress,
  type Hex,
  keccak256,
  keccak256Text,
  sameAddress,
  uintWord,
} from "../../protocol/hex.ts";
import { signatureAdvice } from "../../protocol/mistakes.ts";
import { networkNames, networks } from "../../protocol/networks.ts";
import { describeMalformed } from "../describe-malformed.ts";
import { domainOf, separatorOf, wellKnownChains } from "../domains.ts";
import { digestUnder } from "../eip712.ts";
import type { Recover, SignedDomain, SignedMember } from "../method.ts";
import {
  exactProxyAddress,
  type Permit,
  permit2Address,
  permit2Separator,
  permitHash,
  permitHashOf,
  primaryType,
  uptoProxyAddress,
  wordsOf,
} from "./permit.ts";

/**
 * Guesses what a wrong signature was made for, and how to fix it. Tries only common mistakes, with at most 24 recoveries of
 * 0.06 ms each, because the service does this for each payment that it refuses.
 */
export async function describePermitMistake(
  { permit, signature }: { permit: Permit; signature: Hex },
  right: SignedDomain,
  recover: Recover,
): Promise<string> {
  const malformed = describeMalformed(signature);
  if (malformed !== undefined) return `${malformed}${signatureAdvice["malformed-signature"]}`;
  for (const { mistake, instead, digest } of likelyMistakes(permit, right)) {
    const signer = await recover(digest, signature);
    if (signer !== undefined && sameAddress(signer, permit.from))
      return `It was signed for ${instead}. ${signatureAdvice[mistake]}`;
  }
  const signer = await recover(digestUnder(permit2Separator(right.chainId), permitHash(permit)), signature);
  return signer === undefined
    ? signatureAdvice["malformed-signature"]
    : `For these values it is the signature of ${checksumAddress(signer)}. ${signatureAdvice["permit-signer"]}`;
}

/** The number of well-known chains to try. */
const likelyChains = 4;

type LikelyMistake = {
  mistake: "permit-domain" | "permit-spender" | "permit-witness";
  /** The wrong object of the signature, to complete "It was signed for …". */
  instead: string;
  digest: Hex;
};

/**
 * Other values that a permit may have been signed for, the most likely first. A generator, because most are never needed.
 */
export function* likelyMistakes(permit: Permit, { asset, chainId }: SignedDomain): Generator<LikelyMistake> {
  const separator = permit2Separator(chainId);
  const signed = permitHash(permit);

  const chains = [
    ...networkNames.map((name) => networks[name].chainId),
    ...Array.from(wellKnownChains.keys()).slice(0, likelyChains),
  ];
  for (const other of chains) {
    if (other === chainId) continue;
    const digest = digestUnder(permit2Separator(other), signed);
    yield { mistake: "permit-domain", instead: `chain ${other}`, digest };
  }
  const ofToken = digestUnder(separatorOf(domainOf({ asset, chainId })), signed);
  yield { mistake: "permit-domain", instead: "the domain of the token", digest: ofToken };
  const versioned = { name: "Permit2", version: "1", chainId, verifyingContract: permit2Address };
  const withVersion = digestUnder(separatorOf(versioned), signed);
  yield { mistake: "permit-domain", instead: 'a domain with version "1"', digest: withVersion };

  const proxies = [exactProxyAddress, uptoProxyAddress];
  const spenders = [...proxies, permit.to, permit2Address].filter((one) => !sameAddress(one, permit.spender));
  for (const spender of spenders) {
    const digest = digestUnder(separator, permitHash({ ...permit, spender }));
    yield { mistake: "permit-spender", instead: `the spender ${spender}`, digest };
  }

  const without = digestUnder(separator, keccak256(`${plainTypehash}${wordsOf(permit)}`));
  yield { mistake: "permit-witness", instead: "a permit without a witness", digest: without };
  for (const { type, words } of otherWitnesses(permit)) {
    const hash = keccak256(`${keccak256Text(type)}${words}`);
    const digest = digestUnder(separator, permitHashOf(permit, keccak256Text(primaryType(type)), hash));
    yield { mistake: "permit-witness", instead: `a witness of type ${type}`, digest };
  }
  // Deadline and nonce have the same type, so a wallet does not notice if they are swapped.
  const { nonce, deadline } = permit;
  const digest = digestUnder(separator, permitHash({ ...permit, nonce: deadline, deadline: nonce }));
  yield { mistake: "permit-witness", instead: "nonce and deadline in each other's place", digest };
}

/** The type hash of a permit without a witness, which lets the spender pay anyone. The x402 proxies do not accept it. */
const plainTypehash = keccak256Text(
  "PermitTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline)TokenPermissions(address token,uint256 amount)",
);

/** Witnesses of other x402 versions, or with the fields in another order. */
function otherWitnesses({ to, facilitator, validAfter }: Permit): readonly { type: string; words: string }[] {
  const [payee, after] = [addressWord(to), uintWord(validAfter)];
  if (facilitator === undefined) {
    return [
      { type: "Witness(uint256 validAfter,address to)", words: `${after}${payee}` },
      {
        type: "Witness(address to,uint256 validAfter,bytes extra)",
        words: `${payee}${after}${keccak256("0x").slice(2)}`,
      },
    ];
  }
  const by = addressWord(facilitator);
  return [
    { type: "Witness(address facilitator,address to,uint256 validAfter)", words: `${by}${payee}${after}` },
    { type: "Witness(address to,uint256 validAfter,address facilitator)", words: `${payee}${after}${by}` },
    { type: "Witness(address to,uint256 validAfter)", words: `${payee}${after}` },
  ];
}

/** The fields of a permit with their names in Permit2 and the x402 proxies, in signing order. */
export function describePermit(permit: Permit): readonly SignedMember[] {
  const { from, token, amount, spender, nonce, deadline, to, facilitator, validAfter } = permit;
  return [
    { label: "from", value: from, kind: "other" },
    { label: "permitted.token", value: token, kind: "other" },
    { label: "permitted.amount", value: `${amount}`, kind: "amount" },
    { label: "spender", value: spender, kind: "other" },
    { label: "nonce", value: `${nonce}`, kind: "other" },
    { label: "deadline", value: `${deadline}`, kind: "time" },
    { label: "witness.to", value: to, kind: "recipient" },
    ...(facilitator === undefined
      ? []
      : [{ label: "witness.facilitator", value: facilitator, kind: "other" as const }]),
    { label: "witness.validAfter", value: `${validAfter}`, kind: "time" },
  ];
}
