import { parsePaymentRequest } from "../../methods/methods.ts";
import { reasons } from "../../protocol/catalogue.ts";
import { adviceOnReason, reasonTexts } from "../../protocol/catalogue-texts.ts";
import { type Finding, finding, mistakes, sortByRank } from "../../protocol/mistakes.ts";
import {
  builtInNetworks,
  formatNetwork,
  type Network,
  type NetworkRegistry,
} from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { isBytes32 } from "../../protocol/wire-values.ts";
import { showValue } from "../../util/text.ts";
import { explainAuthorization } from "./explain-authorization.ts";
import {
  type ExplainContext,
  explainExtra,
  explainOffer,
  explainTerms,
  missing,
  type Side,
  tokenAsked,
} from "./explain-terms.ts";
import { type Input, isRecord, readInput } from "./read-input.ts";

/** The kind of the explained text, and all findings, worst first. */
export type Explanation = {
  /** Undefined when it could not be read at all. */
  kind: "request" | "payment" | "challenge" | "answer" | undefined;
  findings: readonly Finding[];
  /** The content of an answer, if nothing is wrong with it. */
  says?: string;
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
      found = [
        ...explainRequest(input.payload, input.requirements ?? null, context),
        ...explainOuterVersion(input, context),
      ];
  }
  return { kind: input.kind, findings: sortByRank(findings.concat(found)) };
}

/**
 * The version beside a payment, which decides nothing here. Only said of what can be read: a refusal of anything else
 * has another cause.
 */
function explainOuterVersion(
  { payload, requirements, x402Version }: Extract<Input, { kind: "request" }>,
  { networks = builtInNetworks }: ExplainContext,
): Finding[] {
  if (x402Version === undefined) return [];
  const parsed = parsePaymentRequest(
    { paymentPayload: payload, paymentRequirements: requirements },
    networks,
  );
  if (!parsed.ok || parsed.request.x402Version === x402Version) return [];
  const facts = { got: showValue(x402Version), expected: `${parsed.request.x402Version}, as in the payment` };
  return [finding("outer-version-differs", "x402Version", facts)];
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
    findings.push(finding("missing-member", "paymentRequirements", { expected: "an object" }));
  }
  if (paid.network !== undefined && asked?.network !== undefined && paid.network !== asked.network) {
    const facts = { got: asked.network.name, expected: paid.network.name };
    findings.push(finding("networks-differ", `${asked.at}.network`, facts));
  }
  const network = paid.network ?? asked?.network;
  if (asked !== undefined) findings.push(...explainTerms(asked, network, context));
  const ofPayment = explainAuthorization(payload.payload, asked, network, context);
  const token = asked && tokenAsked({ ...asked, network }, context);
  // Where the signature is good, nobody has signed for what `extra` says.
  if (asked !== undefined && token !== undefined && ofPayment.some(isOfAnotherSigner)) {
    findings.push(...explainExtra(asked.at, asked.value.extra, token));
  }
  findings.push(...ofPayment);
  if (findings.length > 0) return findings;
  const terms = requirements ?? (version === 2 ? accepted : requirementsFor(payload, network));
  const named = requirements === undefined ? at : "paymentRequirements";
  return explainUnread({ payload, requirements: terms, at: named }, context.networks ?? builtInNetworks);
}

function readVersion(payload: Record<string, unknown>, findings: Finding[]): X402Version {
  const looksLike: X402Version = isRecord(payload.accepted) ? 2 : 1;
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
  version: X402Version,
  findings: Finding[],
  { networks = builtInNetworks }: ExplainContext,
): Side {
  const network = readNetwork(`${at}.network`, value.network, version, findings, networks);
  const isShort = version === 1 && at === "paymentRequirements" && value.amount !== undefined;
  if (value.scheme !== "exact" && !(isShort && value.scheme === undefined)) {
    findings.push(missing(`${at}.scheme`, value.scheme, '"exact"'));
  }
  return { at, value, network, isShort };
}

function readNetwork(
  at: string,
  name: unknown,
  version: X402Version,
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

function isOfAnotherSigner({ mistake }: Finding): boolean {
  return mistake === "signed-with-another-domain" || mistake === "signed-by-another-key";
}

/** Checks the offers of a 402, as far as possible before anything is signed. */
function explainChallenge(
  accepts: readonly unknown[],
  version: X402Version,
  context: ExplainContext,
): Finding[] {
  const each = accepts.map((entry, index) => {
    const at = `accepts[${index}]`;
    if (!isRecord(entry)) return [missing(at, entry, "an object")];
    const findings: Finding[] = [];
    const side = readSide(at, entry, version, findings, context);
    const token = tokenAsked(side, context);
    const found = [
      ...findings,
      ...explainTerms(side, side.network, context),
      ...(token === undefined ? [] : explainOffer(at, entry, token)),
    ];
    if (found.length > 0) return found;
    const payload = paymentFor(entry, version);
    return explainUnread({ payload, requirements: entry, at }, context.networks ?? builtInNetworks);
  });
  const none = each.length === 0 || each.every((findings) => findings.length > 0);
  return [...(none ? [finding("nothing-accepted", "accepts")] : []), ...each.flat()];
}

function explainAnswer(answer: object): Pick<Explanation, "findings" | "says"> {
  const fields: AnswerMembers = answer;
  if (fields.success === true) {
    const { transaction, network } = fields;
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

/** Both halves of a request. `at`: what the requirements are called. */
type Halves = { payload: unknown; requirements: unknown; at: string };

/**
 * What the service itself says of a request that it cannot read. For requests in which nothing else was found: what it
 * refuses must never be said to be right.
 */
function explainUnread({ payload, requirements, at }: Halves, networks: NetworkRegistry): Finding[] {
  const body = { paymentPayload: payload, paymentRequirements: requirements };
  const parsed = parsePaymentRequest(body, networks);
  if (parsed.ok) {
    const { identifierProblem } = parsed;
    return identifierProblem === undefined
      ? []
      : [finding("missing-member", "paymentPayload.extensions", { expected: identifierProblem })];
  }
  const { message, at: path = "" } = parsed.invalid;
  const problem = message.slice(path.length);
  const found = path
    .split(".")
    .reduce<unknown>((value, name) => (isRecord(value) ? value[name] : value), body);
  return [
    finding("missing-member", path.replace(/^paymentRequirements/, at), {
      ...(path !== "" && { got: showValue(found) }),
      expected: problem.replace(/^:? (?:must be )?/, ""),
    }),
  ];
}

/** The requirements that a payment header of version 1, which has none, can be meant for. */
function requirementsFor(payload: Record<string, unknown>, network: Network | undefined): unknown {
  const { authorization } = isRecord(payload.payload) ? payload.payload : {};
  const { value, to } = isRecord(authorization) ? authorization : {};
  const asset = network?.usdc.address;
  return { scheme: "exact", network: payload.network, maxAmountRequired: value, asset, payTo: to };
}

/** A payment that a payer could make for an offer of a challenge. */
function paymentFor(offer: Record<string, unknown>, version: X402Version): unknown {
  const account = `0x${"01".repeat(20)}`;
  const authorization = {
    ...{ from: account, to: account, value: "1", validAfter: "0", validBefore: "1" },
    nonce: `0x${"01".repeat(32)}`,
  };
  const payload = { signature: "0x", authorization };
  return version === 1
    ? { x402Version: 1, scheme: "exact", network: offer.network, payload }
    : { x402Version: 2, accepted: offer, payload };
}

/** The members of an answer that are read, as they came. */
type AnswerMembers = {
  success?: unknown;
  isValid?: unknown;
  network?: unknown;
  errorReason?: unknown;
  invalidReason?: unknown;
  errorMessage?: unknown;
  invalidMessage?: unknown;
  transaction?: unknown;
  /** Of the catalogue; other facilitators do not say it. */
  situation?: unknown;
  /** Of a problem: an answer without a verdict. */
  type?: unknown;
};

/** Reasons that do not follow from the request, or whose advice says already how to find out what in it leads there. */
const beyondRequest = [
  "insufficient_funds",
  "invalid_transaction_state",
  "invalid_payload",
  "invalid_exact_evm_payload_undeployed_smart_wallet",
];

const noVerdict =
  "The request or the service was in no state to be judged: the answer decides nothing of the payment.";

/** Explains an answer that is no success by its reason. */
function explainRefusedAnswer(answer: AnswerMembers): Finding {
  const { errorReason, errorMessage, situation } = answer;
  const given = errorReason ?? answer.invalidReason;
  const message = errorMessage ?? answer.invalidMessage;
  const sentence = typeof message === "string" && message !== "" ? message : undefined;
  const at = "success" in answer || errorReason !== undefined ? "errorReason" : "invalidReason";
  const got = sentence === undefined ? showValue(given) : `${showValue(given)}: ${sentence}`;
  // Of the reasons that are known, those that refuse nothing.
  const isUndetermined =
    typeof given === "string" && Object.hasOwn(reasonTexts, given) && !Object.hasOwn(reasons, given);
  const mistake = isUndetermined ? "undetermined" : "refused";
  if (typeof given !== "string") {
    return finding(mistake, at, { got, why: "The answer names no reason." });
  }
  const reason = (isUndetermined ? problemOf(answer) : undefined) ?? given;
  const advice = adviceOnReason(reason, situation);
  if (advice === undefined) {
    const why = "The reason is none of this facilitator's: the one that gave it has to say what it means.";
    return finding(mistake, at, { got, why });
  }
  const isInRequest = !isUndetermined && !beyondRequest.includes(reason);
  const fix = isInRequest ? `${advice.fix} ${mistakes.refused.fix}` : advice.fix;
  return finding(mistake, at, { got, fix, reason, why: advice.why || noVerdict });
}

/** The name of the problem that an answer is; undefined for others. */
function problemOf({ type }: AnswerMembers): string | undefined {
  const [, name] =
    (typeof type === "string" && /^urn:x402-facilitator-kit:problem:([a-z-]+)$/.exec(type)) || [];
  return name !== undefined && adviceOnReason(name, undefined) !== undefined ? name : undefined;
}
