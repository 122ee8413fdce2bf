import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { exactEip3009 } from "../../methods/exact-eip3009/eip3009-method.ts";
import { explainExtra } from "../../methods/exact-eip3009/eip3009-people.ts";
import { explainNumber, missing } from "../../methods/explain-members.ts";
import type { MethodForPeople } from "../../methods/for-people.ts";
import { methods, parsePaymentRequest } from "../../methods/methods.ts";
import { halfOfPayload } from "../../methods/people.ts";
import { type Address, checksumAddress, isAddress, isBytes32, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding, type MistakeId, sortByRank } from "../../protocol/mistakes.ts";
import {
  type Asset,
  builtInNetworks,
  formatNetwork,
  type Network,
  type NetworkRegistry,
  type NetworkTier,
} from "../../protocol/networks.ts";
import { signature } from "../../protocol/primitives.ts";
import type { Operation } from "../../protocol/problems.ts";
import { advice, adviceOnPower, powerOfTenBetween } from "../../protocol/refusals.ts";
import type { PaymentWords, PayToPolicy } from "../../protocol/signed-payment.ts";
import {
  formatBoth,
  type KnownTokens,
  knownToken,
  type TokenUnits,
  unitsOf,
} from "../../protocol/token-units.ts";
import { parseUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import { explainAsVerify } from "./explain-as-verify.ts";
import {
  type AnswerMembers,
  amountMemberOf,
  explainOffer,
  explainRefusedAnswer,
  explainSize,
  explainUnread,
  paymentFor,
  requirementsFor,
} from "./explain-exchange.ts";
import { explainTimes } from "./explain-values.ts";
import { type Input, isRecord, readInput } from "./read-input.ts";

/** The deployment of a facilitator: its networks, contracts and tokens. */
export type Deployment = {
  /** The known networks; the built-in ones by default. */
  networks?: NetworkRegistry | undefined;
  /** The facilitator contract of each tier of networks. */
  contracts: Readonly<Record<NetworkTier, Address>>;
  /** Where payments may go besides it; nowhere by default. */
  payTo?: PayToPolicy | undefined;
  /** The tokens that the facilitator takes; the USDC of each network by default. */
  tokens?: KnownTokens | undefined;
};

/** The context that payments are compared with. */
export type ExplainContext = Deployment & {
  /** Unix seconds, by the chain where there is one; undefined where the times of a payment are not to be judged. */
  now: bigint | undefined;
  /** Whose time `now` is, such as `this machine's clock`, where what is said of the times is to name it. */
  clock?: string | undefined;
  /** The operation of the request; by default a request that is good for either is good. Only verify needs an exact maximum. */
  operation?: Operation | undefined;
  /** True if the signature was found good, maybe by the payer's wallet contract, which is not asked here. */
  signatureHeld?: boolean | undefined;
};

/** The kind of the explained text, and all findings, worst first. */
export type Explanation = {
  /** Undefined when it could not be read at all. */
  kind: "request" | "payment" | "challenge" | "answer" | undefined;
  findings: readonly Finding[];
  /** The content of an answer, if nothing is wrong with it. */
  says?: string;
};

type Version = 1 | 2;

/** One half of a request: the payment or the requirements. */
type Side = {
  at: string;
  value: Record<string, unknown>;
  network: Network | undefined;
  /** Requirements in the short form of version 1, which leaves out scheme and payTo. */
  isShort: boolean;
};

/**
 * Explains a payment, a challenge or an answer: lists everything that would prevent settling, not only the first
 * reason a facilitator would give. It asks no chain, so it does not check balances and used authorizations.
 */
export function explain(text: string, context: ExplainContext): Explanation {
  const { input, findings } = readInput(text);
  if (input === undefined) return { kind: undefined, findings };
  let found: Finding[];
  switch (input.kind) {
    case "answer":
      return { kind: "answer", ...explainAnswer(input.answer) };
    case "challenge":
      found = explainChallenge(input.accepts, input.x402Version === 2 ? 2 : 1, context);
      break;
    case "payment":
      found = explainRequest(input.payload, undefined, context);
      break;
    case "request":
      found = explainRequest(input.payload, input.requirements ?? null, context);
  }
  if (input.kind !== "challenge") found.push(...explainReadable(input, found, context));
  return { kind: input.kind, findings: sortByRank(findings.concat(found)) };
}

/** Findings that need a readable payment: refusals by verify's own checks, and what other facilitators may refuse. */
function explainReadable(
  input: Extract<Input, { kind: "request" | "payment" }>,
  found: readonly Finding[],
  context: ExplainContext,
): Finding[] {
  const { networks = builtInNetworks, tokens, contracts, payTo, now, operation } = context;
  const isHeader = input.kind === "payment";
  const requirements = isHeader ? membersOf(input.payload).accepted : input.requirements;
  const parsed = parsePaymentRequest(
    { paymentPayload: input.payload, paymentRequirements: requirements },
    networks,
  );
  if (!parsed.ok) return [];
  const { x402Version, knownNetwork, payment, requirements: asked } = parsed.request;
  const { name, tier } = knownNetwork;
  const assets = acceptedTokens(knownNetwork, tokens);
  const network = { name, facilitatorContract: contracts[tier], payTo, assets };
  const findings = explainAsVerify(parsed.request, network, { found, now, operation });
  if (!isHeader && input.x402Version !== undefined && input.x402Version !== x402Version) {
    const facts = { got: showValue(input.x402Version), expected: `${x402Version}, as in the payment` };
    findings.push(finding("outer-version-differs", "x402Version", facts));
  }
  const { extra, ...terms } = membersOf(requirements);
  const token = knownToken(knownNetwork, asked.asset, tokens);
  // Permits are for a domain of their own, and the short form of version 1 has no `extra`.
  const isCompared = payment.method === exactEip3009 && (x402Version === 2 || terms.amount === undefined);
  const isSaid = found.some(({ mistake }) => mistake === "extra-differs");
  if (token !== undefined && token.version !== "" && isCompared && !isSaid) {
    const at = isHeader ? "paymentPayload.accepted" : "paymentRequirements";
    findings.push(...explainExtra(at, extra, token, "extra-needed-elsewhere"));
  }
  return findings;
}

/** @param requirements undefined of a payment header, which has none */
function explainRequest(payload: unknown, requirements: unknown, context: ExplainContext): Finding[] {
  const findings: Finding[] = [];
  if (!isRecord(payload)) {
    return [finding("missing-member", "paymentPayload", { expected: "an object" })];
  }
  const version = readVersion(payload, findings);
  const accepted = version === 2 && isRecord(payload.accepted) ? payload.accepted : payload;
  const at = accepted === payload ? "paymentPayload" : "paymentPayload.accepted";
  const paid = readSide(at, accepted, version, findings, context);
  const asked = isRecord(requirements)
    ? readSide("paymentRequirements", requirements, version, findings, context)
    : version === 2 && accepted !== payload
      ? { ...paid, at: "paymentPayload.accepted" }
      : undefined;
  if (requirements !== undefined && !isRecord(requirements)) {
    findings.push(explainNoRequirements(requirements));
  }
  if (paid.network !== undefined && asked?.network !== undefined && paid.network !== asked.network) {
    const facts = { got: asked.network.name, expected: paid.network.name };
    findings.push(finding("networks-differ", `${asked.at}.network`, facts));
  }
  const isNamed = !findings.some(({ mistake }) => mistake === "unknown-scheme");
  if (isNamed && asked !== undefined && !asked.isShort && paid.value.scheme !== asked.value.scheme) {
    const facts = { got: showValue(asked.value.scheme), expected: showValue(paid.value.scheme) };
    findings.push(finding("schemes-differ", `${asked.at}.scheme`, facts));
  }
  const network = paid.network ?? asked?.network;
  if (asked !== undefined) findings.push(...explainTerms(asked, network, context));
  const ofPayment = explainSigned(payload.payload, asked, network, context);
  const token = asked && tokenAsked({ ...asked, network }, context);
  // Where the signature is good, nobody has signed for what `extra` says, and it is no cause here.
  if (asked !== undefined && token !== undefined && ofPayment.some(isOfAnotherSigner)) {
    findings.push(...explainExtra(asked.at, asked.value.extra, token));
  }
  findings.push(...ofPayment);
  if (findings.length > 0) return findings;
  const terms = requirements ?? (version === 2 ? accepted : requirementsFor(payload, network));
  const named = requirements === undefined ? at : "paymentRequirements";
  return explainUnread({ payload, requirements: terms, at: named }, context.networks ?? builtInNetworks);
}

/** Requirements that are no object: often all that the shop offers, of which the payer has chosen one. */
function explainNoRequirements(requirements: unknown): Finding {
  const at = "paymentRequirements";
  if (!Array.isArray(requirements)) return missing(at, requirements ?? undefined, "an object");
  return finding("missing-member", at, {
    got: `an array of ${requirements.length}`,
    expected: "an object: the one of `accepts` that the payer chose",
    why: "A payment is verified and settled against one offer.",
    fix: "Send the one of `accepts` that the payer chose, by scheme and network of the payment, and not the whole array.",
  });
}

function readVersion(payload: Record<string, unknown>, findings: Finding[]): Version {
  const looksLike: Version = isRecord(payload.accepted) ? 2 : 1;
  const version = payload.x402Version;
  if (version !== 1 && version !== 2) {
    findings.push(missing("paymentPayload.x402Version", version, "1 or 2"));
    return looksLike;
  }
  if (version !== looksLike) {
    const facts = { got: showValue(version), expected: `${looksLike}, going by its members` };
    findings.push(finding("wrong-version", "paymentPayload.x402Version", facts));
  }
  return looksLike;
}

/** Reads network and scheme of one half. */
function readSide(
  at: string,
  value: Record<string, unknown>,
  version: Version,
  findings: Finding[],
  { networks = builtInNetworks }: ExplainContext,
): Side {
  const network = readNetwork(`${at}.network`, value.network, version, findings, networks);
  const isShort = version === 1 && at === "paymentRequirements" && value.amount !== undefined;
  const schemes = [
    ...new Set<unknown>(methods.filter((one) => one.versions.includes(version)).map(({ scheme }) => scheme)),
  ];
  if (!schemes.includes(value.scheme) && !(isShort && value.scheme === undefined)) {
    const expected = schemes.map((scheme) => `"${scheme}"`).sort();
    findings.push(explainScheme(`${at}.scheme`, value.scheme, expected.join(" or "), version));
  }
  return { at, value, network, isShort };
}

/** A scheme that its version does not have. */
function explainScheme(at: string, scheme: unknown, expected: string, version: Version): Finding {
  const got = showValue(scheme);
  const isOther = methods.some((method) => method.scheme === scheme);
  return finding("unknown-scheme", at, {
    got: isOther ? `${got}, which version ${version} does not have` : got,
    expected: `${expected} in version ${version}`,
  });
}

function readNetwork(
  at: string,
  name: unknown,
  version: Version,
  findings: Finding[],
  networks: NetworkRegistry,
): Network | undefined {
  const network = typeof name === "string" ? networks.find(name, version) : undefined;
  if (network !== undefined) return network;
  const other = typeof name === "string" ? networks.find(name, version === 1 ? 2 : 1) : undefined;
  if (other !== undefined) {
    const expected = `${formatNetwork(other, version)} in version ${version}`;
    findings.push(finding("wrong-version", at, { got: showValue(name), expected }));
  } else {
    const known = networks.all.map((one) => formatNetwork(one, version)).join(", ");
    findings.push(finding("unknown-network", at, { got: showValue(name), expected: `one of ${known}` }));
  }
  return other;
}

/** Checks the seller's terms: amount, asset, payTo. */
function explainTerms(
  { at, value, isShort }: Side,
  network: Network | undefined,
  context: ExplainContext,
): Finding[] {
  const findings: Finding[] = [];
  const amountName = amountMemberOf(value);
  const units = unitsAsked({ value, network }, context);
  findings.push(...explainNumber(`${at}.${amountName}`, value[amountName], units));
  findings.push(...explainSize(`${at}.${amountName}`, value[amountName], units));
  if (value[amountName] === "0" && !takesLess(value)) {
    const facts = { got: '"0"', expected: "more than nothing" };
    findings.push(finding("amount-zero", `${at}.${amountName}`, facts));
  }
  if (network === undefined) return findings;

  const { networks = builtInNetworks, tokens } = context;
  const taken = acceptedTokens(network, tokens);
  const { asset } = value;
  if (!isAddress(asset)) {
    const addresses = taken.map((token) => token.address).join(" or ");
    findings.push(missing(`${at}.asset`, asset, `the token's address, ${addresses}`));
  } else if (!taken.some(({ address }) => sameAddress(address, asset))) {
    const home = networks.all.find((one) => sameAddress(one.usdc.address, asset));
    const or = taken[0] === network.usdc ? ", or an asset that the facilitator was configured for" : "";
    const listed = taken.map((token) => `${token.address} (${unitsOf(token).symbol} on ${network.name})`);
    findings.push(
      finding("wrong-asset", `${at}.asset`, {
        got: home === undefined ? asset : `${asset}, which is ${unitsOf(home.usdc).symbol} on ${home.name}`,
        expected: `${listed.join(" or ")}${or}`,
      }),
    );
  }
  const payTo = payToOf(value, isShort);
  if (payTo !== undefined || !isShort) {
    findings.push(...explainPayTo(`${at}.payTo`, { value: payTo, asset }, network, context));
  }
  return findings;
}

/** The tokens that the facilitator takes on a network: its USDC, unless others are configured. */
function acceptedTokens(network: Network, tokens: KnownTokens | undefined): readonly Asset[] {
  const configured = tokens?.[network.name] ?? [];
  return configured.length > 0 ? configured : [network.usdc];
}

/** Returns true if a seller takes up to what was signed, and says how much. */
function takesLess({ scheme }: Record<string, unknown>): boolean {
  return methods.some((method) => method.takesLess && method.scheme === scheme);
}

/** Where a seller has payments go; undefined where that is left out. */
function payToOf(value: Side["value"], isShort: boolean): unknown {
  return isShort && value.payTo === undefined ? value.recipient : value.payTo;
}

/** Checks whether payments may go to an address. Which wallet is whose is not known here. */
function explainPayTo(
  at: string,
  { value, asset }: { value: unknown; asset: unknown },
  network: Network,
  context: ExplainContext,
): Finding[] {
  const { contracts, payTo = "contract" } = context;
  const contract = contracts[network.tier];
  const expected = `${contract} (the facilitator contract on ${network.name})`;
  if (!isAddress(value)) return [missing(at, value, expected)];
  const facts = { got: value, expected };
  const spelling = explainChecksum(at, value);
  if (sameAddress(value, contract)) return spelling;
  if (isOfOtherTier(value, network, context)) return [finding("other-tier", at, facts)];
  if (payTo === "contract") return [finding("pay-to-not-accepted", at, facts)];
  const tokens = [network.usdc.address, asset].filter(isAddress);
  const isNobody = BigInt(value) === 0n || tokens.some((token) => sameAddress(value, token));
  return isNobody ? [finding("pay-to-nobody", at, { got: value })] : spelling;
}

/** The finding for an address in mixed case whose checksum (EIP-55) is wrong. */
function explainChecksum(at: string, address: Address): Finding[] {
  const expected = checksumAddress(address);
  const digits = address.slice(2);
  const isMixedCase = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  return isMixedCase && address !== expected ? [finding("bad-checksum", at, { got: address, expected })] : [];
}

/** Checks whether a payment was signed to where it is to go: the facilitator contract, unless payments may go elsewhere. */
function explainTo(
  value: unknown,
  { payTo: at }: PaymentWords,
  asked: Side | undefined,
  network: Network,
  context: ExplainContext,
): Finding[] {
  const contract = context.contracts[network.tier];
  const isContractAlone = (context.payTo ?? "contract") === "contract";
  const payTo = asked && (payToOf(asked.value, asked.isShort) ?? contract);
  const wanted = isContractAlone || !isAddress(payTo) ? contract : payTo;
  const expected = sameAddress(wanted, contract)
    ? `${contract} (the facilitator contract on ${network.name})`
    : `${wanted}, as ${asked?.at}.payTo asks`;
  if (!isAddress(value)) return [missing(at, value, expected)];
  // Of a payment header alone it is not known where it is to go.
  if (sameAddress(value, wanted) || (!isContractAlone && asked === undefined)) return [];
  const facts = { got: value, expected };
  if (isOfOtherTier(value, network, context)) return [finding("other-tier", at, facts)];
  return [
    finding("signed-for-another-recipient", at, {
      ...facts,
      ...(!isContractAlone && { fix: advice["signed-for-another-pay-to"] }),
    }),
  ];
}

function isOfOtherTier(value: Address, { tier }: Network, { contracts }: ExplainContext): boolean {
  return sameAddress(value, contracts[tier === "mainnet" ? "testnet" : "mainnet"]);
}

/** Checks the signed message of any payment method. */
function explainSigned(
  payload: unknown,
  asked: Side | undefined,
  network: Network | undefined,
  context: ExplainContext,
): Finding[] {
  const at = "paymentPayload.payload";
  if (!isRecord(payload)) return [missing(at, payload, "an object with signature and authorization")];
  const half = halfOfPayload(payload);
  const { member, words } = half;
  const signed = payload[member];
  if (!isRecord(signed)) return [missing(`${at}.${member}`, signed, "an object")];
  const findings: Finding[] = [];
  const units = unitsAsked(asked ?? { value: {}, network }, context);
  const number = (path: string, unitsOfIt?: TokenUnits) => {
    const given = memberAt(payload, path);
    findings.push(...explainNumber(path, given, unitsOfIt));
    return typeof given === "string" ? (parseUint256(given) ?? undefined) : undefined;
  };
  const value = number(words.limit, units);
  const start = number(`${member}.${words.start}`);
  const end = number(`${member}.${words.end}`);
  if (!isAddress(signed.from)) {
    findings.push(missing(`${member}.from`, signed.from, "the payer's address"));
  }
  findings.push(
    ...half.explainMessage(signed, {
      asked: asked?.value,
      contract: network && context.contracts[network.tier],
    }),
  );
  const to = memberAt(payload, words.payTo);
  if (network !== undefined) findings.push(...explainTo(to, words, asked, network, context));
  if (isAddress(to) && isAddress(signed.from) && sameAddress(to, signed.from)) {
    findings.push(finding("pays-itself", `${member}.from`, { got: signed.from }));
  }
  if (value !== undefined) {
    findings.push(
      ...(asked === undefined
        ? explainSize(words.limit, `${value}`, units)
        : explainAmounts(value, words, asked, units)),
    );
  }
  if (context.signatureHeld !== true) {
    findings.push(...explainSignature(payload, half, asked, network, context));
  }
  findings.push(...explainTimes({ member, words, start, end, asked }, context));
  return findings;
}

/** Checks the signature of any payment method. */
function explainSignature(
  payload: Record<string, unknown>,
  half: MethodForPeople,
  asked: Side | undefined,
  network: Network | undefined,
  { tokens }: ExplainContext,
): readonly Finding[] {
  const at = "paymentPayload.payload.signature";
  const { data } = signature.safeParse(payload.signature);
  if (data === undefined) {
    const facts = { got: showValue(payload.signature), expected: "65 bytes as hexadecimal after 0x" };
    return [finding("malformed-signature", at, facts)];
  }
  const context = { signature: data, at, asked: asked?.value, network, tokens, recover: recoverSigner };
  return half.explainSignature(payload, context);
}

function memberAt(value: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((inner, name) => (isRecord(inner) ? inner[name] : undefined), value);
}

function isOfAnotherSigner({ mistake }: Finding): boolean {
  return mistake === "signed-with-another-domain" || mistake === "signed-by-another-key";
}

/** The token that one half names; undefined where it names none that is known. */
function tokenAsked(
  { value, network }: Pick<Side, "value" | "network">,
  { tokens }: ExplainContext,
): Asset | undefined {
  return typeof value.asset === "string" ? knownToken(network, value.asset, tokens) : undefined;
}

/** How the amounts of one half are shown: in the units of its token, or of the network's USDC. */
function unitsAsked(side: Pick<Side, "value" | "network">, context: ExplainContext): TokenUnits {
  const { network } = side;
  const configured = network && context.tokens?.[network.name]?.[0];
  const token = tokenAsked(side, context) ?? configured ?? network?.usdc;
  return unitsOf(token ?? { name: "USDC", decimals: 6 });
}

function explainAmounts(
  value: bigint,
  { limit: signedAt }: PaymentWords,
  { at, value: terms }: Side,
  units: TokenUnits,
): Finding[] {
  const name = amountMemberOf(terms);
  const required = typeof terms[name] === "string" ? parseUint256(terms[name]) : null;
  if (required === null || required === value || (takesLess(terms) && required < value)) return [];
  const facts = {
    got: formatBoth(value, units),
    expected: `${formatBoth(required, units)}, as ${at}.${name} asks`,
  };
  const power = powerOfTenBetween(value, required);
  if (power === undefined) return [finding("amount-differs", signedAt, facts)];
  const fix = adviceOnPower(power, units);
  return [finding("amount-off-by-decimals", signedAt, { ...facts, fix })];
}

/** The mistakes of an offer of something that is not settled here at all. */
const ofOtherKinds: ReadonlySet<string> = new Set<MistakeId>([
  ...(["unknown-scheme", "unknown-network", "wrong-version"] as const),
  ...(["wrong-asset", "pay-to-not-accepted", "other-tier"] as const),
]);

/** Checks the offers of a 402, as far as possible before anything is signed. */
function explainChallenge(accepts: readonly unknown[], version: Version, context: ExplainContext): Finding[] {
  const each = accepts.map((entry, index) => {
    const at = `accepts[${index}]`;
    if (!isRecord(entry)) return [missing(at, entry, "an object")];
    const findings: Finding[] = [];
    const side = readSide(at, entry, version, findings, context);
    const token = tokenAsked(side, context);
    const found = [
      ...findings,
      ...explainTerms(side, side.network, context),
      ...(token === undefined || side.network === undefined
        ? []
        : explainOffer(at, entry, { token, contract: context.contracts[side.network.tier] })),
    ];
    if (found.length > 0) return found;
    const payload = paymentFor(entry, version);
    return explainUnread({ payload, requirements: entry, at }, context.networks ?? builtInNetworks);
  });
  const isOther = (findings: readonly Finding[]) => findings.some(({ mistake }) => ofOtherKinds.has(mistake));
  // Of a single offer, what is wrong with it says the same.
  const none = each.length !== 1 && each.every(isOther);
  return [...(none ? [finding("nothing-accepted", "accepts")] : []), ...each.flat()];
}

function explainAnswer(answer: object): Pick<Explanation, "findings" | "says"> {
  const fields: AnswerMembers = answer;
  if (fields.success === true) {
    const { transaction, network } = fields;
    if (transaction === "" && fields.amount === "0") {
      const says =
        "Nothing is wrong: the answer says that nothing was taken of the payment, and none of it will be.";
      return { findings: [], says };
    }
    if (!isBytes32(transaction)) {
      return { findings: [missing("transaction", transaction, "the hash of the transaction that paid")] };
    }
    const where = typeof network === "string" ? ` on ${network}` : "";
    return {
      findings: [],
      says: `Nothing is wrong: the answer says that the payment was settled in ${transaction}${where}. The chain was not asked.`,
    };
  }
  if (fields.success === undefined && fields.isValid === true) {
    return {
      findings: [],
      says: "Nothing is wrong: the answer says that the payment is valid. It is not settled by that.",
    };
  }
  return { findings: [explainRefusedAnswer(fields)] };
}
