import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { siblingOf } from "../../methods/domains.ts";
import { exactEip3009 } from "../../methods/exact-eip3009/eip3009-method.ts";
import { explainExtra } from "../../methods/exact-eip3009/eip3009-people.ts";
import { explainedHalfOf } from "../../methods/explained.ts";
import { takenMethodOf, takenMethods } from "../../methods/taken-methods.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { isChannelReason } from "../../protocol/channel-reasons.ts";
import {
  checkValidityWindow,
  type PureCheckName,
  pureCheckNames,
  refuseTerms,
  type ServedNetwork,
} from "../../protocol/checks.ts";
import { type Address, checksumAddress, isAddress, isBytes32, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding, type MistakeId, mistakes, sortByRank } from "../../protocol/mistakes.ts";
import { type Asset, builtInNetworks, type Network } from "../../protocol/networks.ts";
import type { Operation } from "../../protocol/problems.ts";
import { powerOfTenBetween } from "../../protocol/refusals.ts";
import { createRequestReader, type PaymentRequest, type X402Version } from "../../protocol/requests.ts";
import { refuseAsReference } from "../../protocol/strictness.ts";
import { type KnownTokens, knownToken, type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import { isRecord, maxUint256 } from "../../protocol/wire-values.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import type { Deployment } from "./deployment.ts";
import { refuseApproval } from "./explain-as-verify.ts";
import {
  type AnswerMembers,
  explainOffer,
  explainRefusedAnswer,
  explainSize,
  paymentFor,
  requirementsFor,
} from "./explain-exchange.ts";
import { explainMalformed, explainRefused } from "./explain-fault.ts";
import { explainWindow, isOfStart } from "./explain-values.ts";
import { renamedMember } from "./explain-written.ts";
import { type Input, readInput } from "./read-input.ts";

/** The context that payments are checked against. */
export type ExplainContext = Deployment & {
  /** Unix seconds, the chain's time if there is a chain; undefined if the payment's times should not be judged. */
  now: bigint | undefined;
  /** The clock that `now` comes from, such as `this machine's clock`, if findings about times should name it. */
  clock?: string | undefined;
  /** By default the request only has to be good for one of the two; only verify needs an exact maximum. */
  operation?: Operation | undefined;
  /** True if the signature was already found good, perhaps by the payer's wallet contract, which is not called here. */
  signatureHeld?: boolean | undefined;
};

/** The kind of the explained text and all findings, worst first. */
export type Explanation = {
  /** Undefined if the text could not be read at all. */
  kind: "request" | "payment" | "challenge" | "answer" | undefined;
  findings: readonly Finding[];
  /** The content of an answer, if nothing is wrong with it. */
  says?: string;
};

/**
 * Explains a payment, a challenge or an answer: lists everything that would prevent settling, not only the first
 * reason a facilitator would give. Works without a chain, so it checks neither balances nor used authorizations.
 */
export function explain(text: string, context: ExplainContext): Explanation {
  const { input, findings } = readInput(text);
  if (input === undefined) return { kind: undefined, findings };
  if (input.kind === "answer") return { kind: "answer", ...explainAnswer(input.answer) };
  const found =
    input.kind === "challenge"
      ? explainChallenge(input.accepts, input.x402Version === 2 ? 2 : 1, context)
      : explainRequest(input, context);
  return { kind: input.kind, findings: sortByRank(findings.concat(found)) };
}

/** A payment and its terms, as in a request. */
type Halves = {
  payload: unknown;
  terms: unknown;
  /** Maps a path in the request to one in the explained text; undefined for a member made up for reading. */
  placeOf(path: string): string | undefined;
};

/** A request as read by the service's own reader, which continues past faults. */
type Reading = Halves & {
  /** Undefined if it has no payment or names no network. */
  request: PaymentRequest | undefined;
  /** The findings for its faults. */
  malformed: readonly Finding[];
  /** True if no fault's path matches. */
  isFaultless(place: RegExp): boolean;
  /** True if all these members are present and none of them is faulty. */
  isRead(...paths: readonly string[]): boolean;
};

const payloadAt = "paymentPayload.payload";
const termsAt = "paymentRequirements";

const readPaymentRequest = createRequestReader(takenMethods);

/** @param whole the body as received, including members that the reader ignores */
function read(halves: Halves, context: ExplainContext, whole?: Record<string, unknown>): Reading {
  const { payload, terms, placeOf } = halves;
  const { networks = builtInNetworks } = context;
  const body = { paymentPayload: payload, [termsAt]: terms };
  const faults = new Map<string, Invalid>();
  const request = readPaymentRequest(body, networks, (fault) => {
    const { at = "" } = fault;
    if (!faults.has(at)) faults.set(at, fault);
  });
  const version = request?.x402Version ?? (isRecord(membersOf(payload).accepted) ? 2 : 1);
  const amounts = [amountAt(terms), `${payloadAt}.${request?.words.limit}`];
  const malformed = new Map<string, Finding>();
  for (const [path, fault] of faults) {
    const at = placeOf(path);
    // In version 2 some members appear twice.
    if (at === undefined || malformed.has(at)) continue;
    const units = amounts.includes(path) ? unitsAsked(terms, request?.knownNetwork, context) : undefined;
    const inner = path.lastIndexOf(".");
    const beside = membersOf(inner < 0 ? whole : memberAt(body, path.slice(0, inner)));
    const written = { at, value: memberAt(body, path), version, beside, network: request?.knownNetwork };
    malformed.set(at, explainMalformed(fault, { ...written, networks, units }));
  }
  return {
    ...halves,
    request,
    malformed: [...malformed.values()],
    isFaultless: (place) => ![...faults.keys()].some((path) => place.test(path)),
    isRead: (...paths) => paths.every((path) => memberAt(body, path) !== undefined && !faults.has(path)),
  };
}

/** The findings of those of verify's checks whose members can be read. */
function explainTerms(
  request: PaymentRequest,
  { terms, placeOf, isFaultless, isRead }: Reading,
  checks: readonly PureCheckName[],
  context: ExplainContext,
): Finding[] {
  const { words, payment, knownNetwork } = request;
  const method = takenMethodOf(payment);
  const hasOwnAmounts = method.amounts === "own";
  const asset = `${termsAt}.asset`;
  const limit = `${payloadAt}.${words.limit}`;
  // The short form may omit payTo.
  const hasPayTo = isRecord(terms) && isFaultless(/^paymentRequirements\.(payTo|recipient)$/);
  const ready: Readonly<Record<PureCheckName, boolean>> = {
    assetIsAllowed: isRead(asset),
    payToIsAccepted: hasPayTo,
    isSignedForUs:
      hasPayTo &&
      isFaultless(/^paymentPayload\.payload(?!\.signature$)/) &&
      (!hasOwnAmounts || isRead(asset)),
    recipientIsPayTo: hasPayTo && isRead(`${payloadAt}.${words.payTo}`),
    valueIsExact:
      isRead(limit, amountAt(terms)) && (!hasOwnAmounts || isFaultless(/^paymentPayload\.payload/)),
    assetIsSigned: words.asset !== undefined && isRead(asset, `${payloadAt}.${words.asset}`),
    valueIsPositive: isRead(limit),
  };
  const network = servedIn(knownNetwork, context);
  // If only the contract is accepted, payments must be signed for it, whatever payTo says.
  const meant =
    (network.payTo ?? "contract") === "contract" && !hasOwnAmounts
      ? { ...request, requirements: { ...request.requirements, payTo: undefined } }
      : request;
  const refusalsOf = (operation: Operation) =>
    checks
      .filter((name) => ready[name])
      .flatMap((name) =>
        refuseTerms(name === "payToIsAccepted" ? request : meant, network, { method, operation }, [name]),
      );
  const operations = context.operation === undefined ? (["settle", "verify"] as const) : [context.operation];
  // Without a given operation, the request only has to pass for one of them.
  const [refusals = []] = operations.map(refusalsOf).toSorted((one, other) => one.length - other.length);
  const found = new Map<string, Finding>();
  for (const refusal of refusals) {
    const at = placeOf(refusal.at ?? "");
    if (at === undefined) continue;
    // A scheme's own check is more specific than the general one at the same path.
    if ([...found.values()].some((other) => other.at === at && isChannelReason(other.mistake))) continue;
    const one = explainRefused(refusal, at, request);
    found.set(`${one.mistake} ${at}`, moreExactly(one, request, context));
  }
  return [...found.values()];
}

/** Makes the finding for a refusal more specific if the two values show how it came about. */
function moreExactly(
  found: Finding,
  { payment, requirements, knownNetwork }: PaymentRequest,
  context: ExplainContext,
): Finding {
  const { situation, got } = found;
  const isRecipient = situation === "pay_to_not_accepted" || situation === "recipient_differs";
  if (isRecipient && isAddress(got) && isOfOtherTier(got, knownNetwork, context)) {
    return { ...found, mistake: "other-tier", fix: mistakes["other-tier"].fix };
  }
  const sibling = situation === "asset_not_accepted" ? siblingOf(requirements.asset) : undefined;
  if (sibling !== undefined) {
    return { ...found, fix: `${found.fix} This one is the address of ${sibling.symbol}.` };
  }
  const power = powerOfTenBetween(payment.limit, requirements.amount);
  return found.mistake === "amount-differs" && power !== undefined
    ? { ...found, mistake: "amount-off-by-decimals" }
    : found;
}

/** Finds odd terms: no facilitator has to refuse them, but nobody means them. */
function explainOddTerms(
  { terms, placeOf, isRead }: Reading,
  network: Network | undefined,
  context: ExplainContext,
): Finding[] {
  const members = membersOf(terms);
  const [amount, payTo] = [placeOf(amountAt(terms)), placeOf(`${termsAt}.payTo`)];
  const findings: Finding[] = [];
  const value = memberAt({ [termsAt]: terms }, amountAt(terms));
  if (amount !== undefined) {
    findings.push(...explainSize(amount, value, unitsAsked(terms, network, context)));
    const mayBeZero = takenMethods.some(
      ({ scheme, takesLess, amounts }) => scheme === members.scheme && (takesLess || amounts === "own"),
    );
    if (value === "0" && !mayBeZero) {
      const facts = { situation: "amount_zero", got: '"0"', expected: "more than nothing" } as const;
      findings.push(finding("amount-zero", amount, facts));
    }
  }
  if (payTo !== undefined && network !== undefined && isRead(`${termsAt}.payTo`)) {
    findings.push(...explainPayTo(payTo, members, network, context));
  }
  return findings;
}

/** @param input a payment header has only the requirements its payer accepted, and in version 1 none at all */
function explainRequest(
  input: Extract<Input, { kind: "request" | "payment" }>,
  context: ExplainContext,
): Finding[] {
  const { payload } = input;
  const sent = input.kind === "request" ? input.requirements : undefined;
  const { accepted } = membersOf(payload);
  const isAccepted = !isRecord(sent) && isRecord(accepted);
  const isMadeUp = input.kind === "payment" && !isAccepted;
  const place = isAccepted ? "paymentPayload.accepted" : termsAt;
  const reading = read(
    {
      payload,
      terms: isMadeUp ? requirementsFor(membersOf(payload), context) : isAccepted ? accepted : sent,
      placeOf: (path) =>
        isMadeUp && path.startsWith(termsAt)
          ? undefined
          : path.replace(termsAt, place).replace(/^paymentPayload\.payload\.(?=\w+\.)/, ""),
    },
    context,
    input.kind === "request" ? input.whole : undefined,
  );
  const findings = [...reading.malformed];
  if (input.kind === "request" && isAccepted) {
    const facts = { got: showValue(sent), expected: "an object: the one of `accepts` that the payer chose" };
    const renamed = renamedMember(termsAt, 2, input.whole);
    // Verify checks the requirements after the payment's version, scheme and network.
    const head = /^paymentPayload(\.accepted)?(\.(x402Version|scheme|network))?$/;
    const before = findings.filter(({ at }) => head.test(at)).length;
    findings.splice(
      before,
      0,
      finding(renamed === undefined ? "missing-member" : "other-name", termsAt, {
        situation: "requirements_malformed",
        ...facts,
        ...(sent === undefined && renamed),
      }),
    );
  }
  const { request, terms } = reading;
  const odd = explainOddTerms(reading, request?.knownNetwork, context);
  if (request === undefined) return [...findings, ...odd];
  const isZero = odd.some(({ mistake }) => mistake === "amount-zero");
  const refused = explainTerms(request, reading, pureCheckNames, context);
  findings.push(...refused.filter(({ mistake }) => !(isZero && mistake === "amount-zero")), ...odd);
  const unlike = refuseAsReference(request, servedIn(request.knownNetwork, context));
  const at = reading.placeOf(unlike?.at ?? "");
  if (unlike !== undefined && at !== undefined && !findings.some((one) => one.at === at)) {
    findings.push(explainRefused(unlike, at, request));
  }
  if (isMadeUp) {
    const { payment, words, knownNetwork } = request;
    findings.push(...explainSize(words.limit, `${payment.limit}`, unitsAsked(terms, knownNetwork, context)));
  }
  findings.push(...explainSigned(request, reading, isMadeUp ? undefined : place, context));
  if (request.identifierProblem !== undefined) {
    findings.push(
      finding("missing-member", "paymentPayload.extensions", { expected: request.identifierProblem }),
    );
  }
  if (reading.malformed.length > 0) return findings;
  return [...findings, ...explainElsewhere(input, request, { terms, place, findings }, context)];
}

/** Explains the signed parts: the signature, the validity window, and an approval that came with the payment. */
function explainSigned(
  request: PaymentRequest,
  { terms, isFaultless, isRead }: Reading,
  place: string | undefined,
  context: ExplainContext,
): Finding[] {
  const { payment, words, requirements, knownNetwork: network } = request;
  const { now, clock, tokens } = context;
  const member = words.nonce.replace(/\.\w+$/, "");
  const findings: Finding[] = [];
  const isWhole = isFaultless(/^paymentPayload\.payload/);
  if (
    words.payer !== words.payTo &&
    isRead(`${payloadAt}.${words.payer}`, `${payloadAt}.${words.payTo}`) &&
    sameAddress(payment.payTo, payment.payer)
  ) {
    findings.push(finding("pays-itself", words.payer, { got: payment.payer }));
  }
  if (isWhole && context.signatureHeld !== true) {
    const isOfAsked = isRead(`${termsAt}.asset`) || words.asset !== undefined;
    const address = isOfAsked ? payment.asset : network.usdc.address;
    const asset = knownToken(network, address, tokens) ?? { ...network.usdc, address };
    const at = `${payloadAt}.signature`;
    const about = { at, network, asset, requirements, recover: recoverSigner };
    const found = explainedHalfOf(payment.method).explainSignature(payment, about);
    const token = tokenAsked(terms, network, context);
    // A good signature proves the domain was right, so a wrong `extra` matters only if the signature is bad.
    if (place !== undefined && token !== undefined && found.some(isOfAnotherSigner)) {
      findings.push(...explainExtra(place, requirements.extra, token));
    }
    findings.push(...found);
  }
  const approval = isWhole ? refuseApproval(request, now) : undefined;
  if (approval !== undefined) findings.push(explainRefused(approval, "", request));
  // Messages that move tokens deposited earlier have no times.
  if (now === undefined || takenMethodOf(payment).transfer === "any") return findings;
  // Even if the start is still to come, check the end as well.
  const begun = { ...payment, window: { ...payment.window, first: 0n } };
  const found = new Map<string, Finding>();
  for (const one of [payment, begun]) {
    const refusal = checkValidityWindow({ ...request, payment: one }, now, servedIn(network, context));
    if (refusal === undefined) continue;
    const bound = isOfStart(refusal) ? words.start : words.end;
    if (!isRead(`${payloadAt}.${member}.${bound}`)) continue;
    found.set(bound, explainWindow(refusal, request, { now, clock, place: place ?? termsAt }));
  }
  return [...findings, ...found.values()];
}

/** In a request that is readable here, finds what this facilitator ignores but others may refuse. */
function explainElsewhere(
  input: Extract<Input, { kind: "request" | "payment" }>,
  { x402Version, payment, knownNetwork }: PaymentRequest,
  { terms, place, findings }: { terms: unknown; place: string; findings: readonly Finding[] },
  context: ExplainContext,
): Finding[] {
  const { extra, amount } = membersOf(terms);
  const found: Finding[] = [];
  if (input.kind === "request" && input.x402Version !== undefined && input.x402Version !== x402Version) {
    const facts = { got: showValue(input.x402Version), expected: `${x402Version}, as in the payment` };
    found.push(finding("outer-version-differs", "x402Version", facts));
  }
  const token = tokenAsked(terms, knownNetwork, context);
  // Permits use a domain of their own, version 1's short form has no `extra`, and its header no terms.
  const isCompared = payment.method === exactEip3009 && (x402Version === 2 || amount === undefined);
  const isSaid = findings.some(({ mistake }) => mistake === "extra-differs");
  const isHeader = input.kind === "payment" && x402Version === 1;
  if (token !== undefined && token.version !== "" && isCompared && !isSaid && !isHeader) {
    found.push(...explainExtra(place, extra, token, "extra-needed-elsewhere"));
  }
  return found;
}

/** The network as this facilitator serves it. */
function servedIn(network: Network, { contracts, payTo, strictness, tokens }: ExplainContext): ServedNetwork {
  return {
    name: network.name,
    facilitatorContract: contracts[network.tier],
    payTo,
    strictness,
    // The reference facilitator has no limit on how long a payment is valid.
    ...(strictness === "reference" && { maxValiditySeconds: maxUint256 }),
    assets: acceptedTokens(network, tokens),
  };
}

/** The tokens accepted on a network: those configured, otherwise its USDC. */
function acceptedTokens(network: Network, tokens: KnownTokens | undefined): readonly Asset[] {
  const configured = tokens?.[network.name] ?? [];
  return configured.length > 0 ? configured : [network.usdc];
}

/** Checks a payTo that the facilitator accepts. Who owns which wallet is not known here. */
function explainPayTo(
  at: string,
  { payTo: value, asset }: Record<string, unknown>,
  network: Network,
  context: ExplainContext,
): Finding[] {
  const { contracts, payTo = "contract" } = context;
  const contract = contracts[network.tier];
  if (!isAddress(value)) return [];
  if (!sameAddress(value, contract)) {
    // Already reported by the `payToIsAccepted` check.
    if (payTo === "contract") return [];
    if (isOfOtherTier(value, network, context)) {
      return [finding("other-tier", at, { got: value, expected: contract })];
    }
    const tokens = [network.usdc.address, asset].filter(isAddress);
    const isNobody = BigInt(value) === 0n || tokens.some((token) => sameAddress(value, token));
    if (isNobody) return [finding("pay-to-nobody", at, { got: value })];
  }
  const expected = checksumAddress(value);
  const digits = value.slice(2);
  const isMixedCase = digits !== digits.toLowerCase() && digits !== digits.toUpperCase();
  return isMixedCase && value !== expected ? [finding("bad-checksum", at, { got: value, expected })] : [];
}

function isOfOtherTier(value: Address, { tier }: Network, { contracts }: ExplainContext): boolean {
  return sameAddress(value, contracts[tier === "mainnet" ? "testnet" : "mainnet"]);
}

function memberAt(value: unknown, path: string): unknown {
  return path
    .split(/[.[\]]+/)
    .filter((name) => name !== "")
    .reduce<unknown>((inner, name) => membersOf(inner)[name], value);
}

/** The path of the amount in the terms, which depends on their version. */
function amountAt(terms: unknown): string {
  return `${termsAt}.${membersOf(terms).maxAmountRequired === undefined ? "amount" : "maxAmountRequired"}`;
}

function isOfAnotherSigner({ mistake }: Finding): boolean {
  return mistake === "signed-with-another-domain" || mistake === "signed-by-another-key";
}

/** The token that the terms name; undefined if it is unknown. */
function tokenAsked(
  terms: unknown,
  network: Network | undefined,
  { tokens }: ExplainContext,
): Asset | undefined {
  const { asset } = membersOf(terms);
  return typeof asset === "string" ? knownToken(network, asset, tokens) : undefined;
}

/** The units for amounts: of the token in the terms, else of the first configured token or the network's USDC. */
function unitsAsked(terms: unknown, network: Network | undefined, context: ExplainContext): TokenUnits {
  const configured = network && context.tokens?.[network.name]?.[0];
  const token = tokenAsked(terms, network, context) ?? configured ?? network?.usdc;
  return unitsOf(token ?? { name: "USDC", decimals: 6 });
}

/** Mistakes that mean this facilitator does not settle such offers at all. */
const ofOtherKinds: ReadonlySet<string> = new Set<MistakeId>([
  ...(["unknown-scheme", "unknown-network", "wrong-version"] as const),
  ...(["wrong-asset", "pay-to-not-accepted", "other-tier"] as const),
]);

/** Checks the offers of a 402, as far as possible before anything is signed. */
function explainChallenge(
  accepts: readonly unknown[],
  version: X402Version,
  context: ExplainContext,
): Finding[] {
  if (accepts.length === 0) {
    const title = "The challenge offers nothing: `accepts` is empty";
    const fix = "Offer at least one way to pay; GET /supported lists them.";
    return [finding("missing-member", "accepts", { title, got: "[]", expected: "the offers", fix })];
  }
  const each = accepts.map((offer, index) => {
    const at = `accepts[${index}]`;
    if (!isRecord(offer)) {
      return [finding("missing-member", at, { got: showValue(offer), expected: "an object" })];
    }
    const payload = paymentFor(offer, version);
    const placeOf = (path: string) =>
      path === "" || path.startsWith(termsAt) ? path.replace(/^(paymentRequirements)?/, at) : undefined;
    const reading = read({ payload, terms: offer, placeOf }, context);
    const { request, malformed } = reading;
    const network = request?.knownNetwork;
    const token = network && tokenAsked(offer, network, context);
    return [
      ...malformed,
      ...explainOddTerms(reading, network, context),
      ...(request ? explainTerms(request, reading, ["assetIsAllowed", "payToIsAccepted"], context) : []),
      ...(token ? explainOffer(at, offer, { token, contract: context.contracts[network.tier] }) : []),
    ];
  });
  const isOther = (findings: readonly Finding[]) => findings.some(({ mistake }) => ofOtherKinds.has(mistake));
  // For a single offer, its own findings already say so.
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
      const facts = { got: showValue(transaction), expected: "the hash of the transaction that paid" };
      return { findings: [finding("missing-member", "transaction", facts)] };
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
