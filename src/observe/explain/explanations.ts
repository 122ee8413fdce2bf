import { buildBody } from "../../methods/build-request.ts";
import { methods } from "../../methods/methods.ts";
import { type Invalid, isDecidedBy } from "../../protocol/catalogue.ts";
import {
  adviceOnAnswer,
  adviceOnReason,
  errorsFile,
  errorsSection,
  withoutLocal,
} from "../../protocol/catalogue-texts.ts";
import { isChannelReason } from "../../protocol/channel-reasons.ts";
import {
  type Finding,
  finding,
  isCause,
  isMistakeId,
  type Mistake,
  mistakes,
} from "../../protocol/mistakes.ts";
import { isProblem } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isErc6492 } from "../../protocol/signed-payment.ts";
import { knownToken } from "../../protocol/token-units.ts";
import { shownPackageFile } from "../../util/self-command.ts";
import { escapeControls, isMasked } from "../../util/text.ts";
import type { Deployment } from "./deployment.ts";
import type { Explanation } from "./explain-input.ts";
import { type ExplainContext, explain } from "./explain-input.ts";

/** A mistake in a payment, and its fix. */
export type RefusalExplanation = {
  /** One of `mistakes`, or else the reason of the refusal. */
  mistake: string;
  /** The situation of the catalogue that it causes or is, where that is one. */
  situation: string | null;
  title: string;
  /** Where it is, such as `authorization.validBefore`; empty for the whole payment. */
  at: string;
  got: string | null;
  expected: string | null;
  why: string;
  fix: string;
  /** Where to read on; see {@link errorsSection}. */
  more: string;
};

/** A refused verify or settle: why, and the payment, where it could be read. */
export type RefusedRequest = {
  reason: string | undefined;
  message: string | undefined;
  /** One of the catalogue; undefined where only the reason is known. */
  situation?: string | undefined;
  /** The chain's time that the payment's own was compared with, unix seconds. */
  chainTime?: Invalid["chainTime"];
  request: PaymentRequest | undefined;
  /** The body that it was read of, where that is known; otherwise one is made of it. */
  body?: string | undefined;
  /** The whole body where no payment could be read of it, with its secrets masked. */
  received?: string | undefined;
  /** The time of the request, in unix milliseconds. */
  at: number;
};

/**
 * Since when chains have another time than this machine: since their start, as with a seed; or since it was moved, which a reset
 * undoes. Undefined where they have the same.
 */
export type OwnClockSince = "started" | "moved" | undefined;

/** The context that refusals are explained with. */
export type RefusalContext = Deployment & {
  /** Since when the chains have another time than this machine. */
  ownClockSince?: (() => OwnClockSince) | undefined;
  /** True if commands may act on local chains: not at a mock, which has none. */
  hasChains?: boolean | undefined;
};

/** Returns true if the payment was refused when its signature and times were right, or did not matter any more. */
const isBeyondTimes = (refused: RefusedRequest) => isDecidedBy(refused, "state", "ledger");

/**
 * The time to judge a payment's own times by, unix seconds: the chain's where it was asked, else this machine's where that may
 * stand for it.
 */
function timeOf(refused: RefusedRequest, { ownClockSince }: RefusalContext): bigint | undefined {
  const { chainTime, at } = refused;
  const isUnknown = ownClockSince?.() !== undefined || isBeyondTimes(refused);
  if (chainTime !== undefined) return BigInt(chainTime);
  return isUnknown ? undefined : BigInt(Math.floor(at / 1000));
}

/** From so many seconds on, the times of two clocks differ by more than blocks and requests take. */
const clocksDiffer = 60;

/** How far the chain's clock is from this machine's, by which clients mostly sign; undefined where they agree. */
function oddClock(now: bigint, at: number): string | undefined {
  const ahead = Number(now) - Math.floor(at / 1_000);
  if (Math.abs(ahead) < clocksDiffer) return undefined;
  return `${Math.abs(ahead)} s ${ahead > 0 ? "ahead of" : "behind"} this machine's`;
}

/** The problem with a payment's times, with what to do about the clock that they were compared with. */
function withClock(
  one: RefusalExplanation,
  odd: string | undefined,
  { ownClockSince }: RefusalContext,
): RefusalExplanation {
  if (odd === undefined || !isDecidedBy({ ...one, reason: one.mistake }, "time")) return one;
  const first =
    ownClockSince?.() === "moved"
      ? `The local chain's clock is ${odd}: \`x402-kit reset\` puts it back, with all else there.`
      : `Go by the chain's clock, which is ${odd}.`;
  return { ...one, fix: `${first} ${one.fix}` };
}

/** Explains a refusal by the mistakes found in the payment, otherwise by the meaning of its reason. */
export function explainRefusal(refused: RefusedRequest, context: RefusalContext): RefusalExplanation[] {
  const { reason, situation, chainTime, request } = refused;
  const now = timeOf(refused, context);
  const isByCode = isDecidedBy({ situation }, "code");
  // The chain's time is asked for a payment whose signature has held; a wallet that refuses one has decided itself.
  const signatureHeld = isBeyondTimes(refused) || chainTime !== undefined || isByCode;
  const odd = now === undefined ? undefined : oddClock(now, refused.at);
  const clock = odd && `the chain's clock, which is ${odd}`;
  const mistakes = findMistakes(bodyText(refused, context), { ...context, now, clock, signatureHeld }).map(
    (one) => withClock(one, odd, context),
  );
  // A facilitator may be configured to settle payments of nothing.
  const isZeroRefused = reason === "invalid_payment_requirements";
  // The answer knows verify's own refusal best: it may sponsor no approvals, and accept an expired one that is not needed.
  const found = [
    ...undeployedWallet(refused),
    ...mistakes.filter(
      ({ mistake }) =>
        (isMistakeId(mistake) || isChannelReason(mistake)) && (mistake !== "amount-zero" || isZeroRefused),
    ),
  ];
  // A body that was refused unread may hold mistakes besides.
  const isUnread = request === undefined && reason !== undefined && isProblem(reason);
  // What is only worth a look is no cause.
  const isAllSaid = found.some(isCause) && !isUnread && !isByCode;
  if (reason === undefined || isAllSaid) return found;
  const ofReason = explanationOfReason({ ...refused, reason });
  const { hasChains = true } = context;
  return [hasChains ? ofReason : { ...ofReason, fix: withoutLocal(ofReason.fix) }, ...found];
}

/** A signature that only a wallet contract can have made, refused because there is none at the payer's address. */
function undeployedWallet({ situation, request }: RefusedRequest): RefusalExplanation[] {
  if (situation !== "signature_wrong" || request === undefined) return [];
  const { signature, payer } = request.payment;
  const bytes = (signature.length - 2) / 2;
  if (bytes <= 65 || isErc6492(signature)) return [];
  const title = "The signature is a wallet contract's, and the payer is no contract";
  const got = `${bytes} bytes, as wallet contracts sign; there is no code at ${payer} that could check them`;
  const why =
    "An account without code signs 65 bytes. A smart wallet that is not deployed has to say how it will be: by the ending of ERC-6492.";
  return [
    explanationOf(
      finding("undeployed-wallet", "paymentPayload.payload.signature", { situation, title, got, why }),
    ),
  ];
}

/** The text about a refusal that nothing in the payment explains. `at` is what it is about, where that is one member. */
export function explanationOfReason(
  { reason, message, situation }: Pick<RefusedRequest, "message" | "situation"> & { reason: string },
  at = "",
): RefusalExplanation {
  const { fact, why, fix } =
    message === undefined
      ? { fact: reason, ...(adviceOnReason(reason, situation) ?? { why: "", fix: "" }) }
      : adviceOnAnswer(reason, { situation, message });
  const more = errorsSection(reason);
  return {
    mistake: reason,
    situation: situation ?? null,
    title: fact,
    at,
    got: null,
    expected: null,
    why,
    fix,
    more,
  };
}

/** The text about a payment whose answer was lost. `ledger`: what is known of its settlement. */
export function explainLostAnswer(ledger: string | null): RefusalExplanation {
  const got = ledger === null ? {} : { got: `the ledger says: ${ledger}` };
  return explanationOf(finding("answer-lost", "", got));
}

/** The body of a verify or settle for this payment, in the full form of its version; empty of a method that is not written here. */
export function requestBodyOf(
  request: PaymentRequest,
  { contracts, tokens }: Deployment,
): Record<string, unknown> {
  const { knownNetwork, requirements, payment, x402Version } = request;
  const known = knownToken(knownNetwork, requirements.asset, tokens) ?? knownNetwork.usdc;
  const facilitatorContract = contracts[knownNetwork.tier];
  const method = methods.find(({ name }) => name === payment.method);
  if (method === undefined) return {};
  const { scheme, extra, write } = method;
  const parts = {
    x402Version,
    network: knownNetwork,
    asset: { ...known, address: requirements.asset },
    payTo: requirements.payTo ?? facilitatorContract,
    amount: requirements.amount,
    resource: "",
    scheme,
    extra: extra({ ...knownNetwork, facilitatorContract, assets: [known] }) ?? {},
  };
  return buildBody(parts, write(payment));
}

function bodyText({ request, body, received }: RefusedRequest, context: Deployment): string | undefined {
  return request === undefined ? received : (body ?? JSON.stringify(requestBodyOf(request, context)));
}

function findMistakes(body: string | undefined, context: ExplainContext): RefusalExplanation[] {
  if (body === undefined) return [];
  const { kind, findings } = explain(body, context);
  // What is no request at all is explained better by the answer.
  if (kind !== "request") return [];
  return findings.filter(({ got = "" }) => !isMasked(got)).map(explanationOf);
}

/** A finding with what is said of every mistake of its kind. */
export function explanationOf(found: Finding): RefusalExplanation {
  const { mistake, at, got, expected, fix, reason = mistake } = found;
  const known: Pick<Mistake, "situation" | "title" | "why"> = isMistakeId(mistake)
    ? mistakes[mistake]
    : { title: mistake, why: "" };
  const { situation = null, title, why } = { ...known, ...found };
  const more = errorsSection(reason);
  return { mistake, situation, title, at, got: got ?? null, expected: expected ?? null, why, fix, more };
}

/** The questions that a chain was asked about a payment: whether its authorization was used, or also whether the payer can pay. */
export type KnownOfChain = "nothing" | "use" | "state";

/** All that is wrong with something, as text for a terminal. */
export function formatExplanations(
  explanations: readonly RefusalExplanation[],
  { kind, says, known = "nothing" }: Omit<Explanation, "findings"> & { known?: KnownOfChain },
): string {
  if (explanations.length === 0) return escapeControls(says ?? nothingWrong(kind, known));
  const what = kind === undefined ? "" : ` in this ${kind}`;
  const count = explanations.length === 1 ? "One thing is" : `${explanations.length} things are`;
  return [
    `${count} wrong${what}:`,
    ...explanations.flatMap((explanation, index) => {
      const [title, ...facts] = describeMistake(explanation, "   ");
      return ["", `${index + 1}. ${title}`, ...facts];
    }),
  ].join("\n");
}

/** Lines for a terminal about one mistake: its title, and what is known of it below, indented. */
export function describeMistake(
  { title, at, got, expected, why, fix, more }: RefusalExplanation,
  indent: string,
): readonly string[] {
  const facts = { got, expected, why, fix, more: whereToRead(more) };
  return [
    `${title}${at === "" ? "" : ` (${at})`}`,
    ...Object.entries(facts).flatMap(([name, fact]) =>
      fact === null || fact === "" ? [] : [`${indent}${`${name}:`.padEnd(9)} ${fact}`],
    ),
  ].map(escapeControls);
}

/** A section of the package's own guide under the name that the file has here; empty where it has none. */
function whereToRead(more: string): string {
  if (!more.startsWith(errorsFile)) return more;
  const file = shownPackageFile(errorsFile);
  return file === undefined ? "" : more.replace(errorsFile, file);
}

function nothingWrong(kind: Explanation["kind"], known: KnownOfChain): string {
  if (kind === "challenge") {
    return "Nothing is wrong with it: each of its offers names what the facilitator settles.";
  }
  const comparison = "If the shop refused it, compare it with the shop's offer: --shop URL.";
  if (known === "state") {
    return `The facilitator would settle it: balance, blacklist, pause and authorization were looked up on its chain. ${comparison}`;
  }
  const open =
    known === "use"
      ? "balance and blacklist"
      : "balance, blacklist and whether the authorization was used before";
  return `Nothing is wrong with it as far as can be told without the chain: ${open} are not looked at. ${comparison}`;
}
