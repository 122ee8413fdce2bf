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
  /** One of `mistakes`, otherwise the reason of the refusal. */
  mistake: string;
  /** The catalogue situation that it causes or is, if any. */
  situation: string | null;
  title: string;
  /** The path of the field, such as `authorization.validBefore`; empty for the whole payment. */
  at: string;
  got: string | null;
  expected: string | null;
  why: string;
  fix: string;
  /** Where to read more; see {@link errorsSection}. */
  more: string;
};

/** A refused verify or settle: the reason, and the payment if it could be read. */
export type RefusedRequest = {
  reason: string | undefined;
  message: string | undefined;
  /** A catalogue situation; undefined if only the reason is known. */
  situation?: string | undefined;
  /** The chain's time that the payment's own times were compared with, in Unix seconds. */
  chainTime?: Invalid["chainTime"];
  request: PaymentRequest | undefined;
  /** The body that the payment was read from, if known; otherwise a body is built from `request`. */
  body?: string | undefined;
  /** The whole body, with its secrets masked, if no payment could be read from it. */
  received?: string | undefined;
  /** The time of the request, in Unix milliseconds. */
  at: number;
};

/**
 * Why the chains' time differs from this machine's: they started that way, as with a seed, or it was moved later,
 * which a reset undoes. Undefined if the times are the same.
 */
export type OwnClockSince = "started" | "moved" | undefined;

/** The context for explaining refusals. */
export type RefusalContext = Deployment & {
  /** Returns why the chains' time differs from this machine's. */
  ownClockSince?: (() => OwnClockSince) | undefined;
  /** True if commands can act on local chains; false for a mock, which has none. */
  hasChains?: boolean | undefined;
};

/** True if the payment was refused after its signature and times were found good, or no longer mattered. */
const isBeyondTimes = (refused: RefusedRequest) => isDecidedBy(refused, "state", "ledger");

/**
 * The time to judge a payment's own times by, in Unix seconds: the chain's if it was read, else this machine's;
 * undefined if the two clocks differ on purpose or the times no longer matter.
 */
function timeOf(refused: RefusedRequest, { ownClockSince }: RefusalContext): bigint | undefined {
  const { chainTime, at } = refused;
  const isUnknown = ownClockSince?.() !== undefined || isBeyondTimes(refused);
  if (chainTime !== undefined) return BigInt(chainTime);
  return isUnknown ? undefined : BigInt(Math.floor(at / 1000));
}

/** In seconds. A larger difference between two clocks cannot come from block times and request durations. */
const clocksDiffer = 60;

/** How far the chain's clock is from this machine's, by which most clients sign; undefined if they agree. */
function oddClock(now: bigint, at: number): string | undefined {
  const ahead = Number(now) - Math.floor(at / 1_000);
  if (Math.abs(ahead) < clocksDiffer) return undefined;
  return `${Math.abs(ahead)} s ${ahead > 0 ? "ahead of" : "behind"} this machine's`;
}

/** Adds to the fix for a payment's times what to do about a chain clock that is off. */
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
  // The chain's time is only read after the signature was found good; a refusal by a wallet contract is the wallet's
  // own decision.
  const signatureHeld = isBeyondTimes(refused) || chainTime !== undefined || isByCode;
  const odd = now === undefined ? undefined : oddClock(now, refused.at);
  const clock = odd && `the chain's clock, which is ${odd}`;
  const mistakes = findMistakes(bodyText(refused, context), { ...context, now, clock, signatureHeld }).map(
    (one) => withClock(one, odd, context),
  );
  // A facilitator may be configured to settle payments of zero.
  const isZeroRefused = reason === "invalid_payment_requirements";
  // Trust the response for verify's own refusals: the service may sponsor no approvals, or accept an expired one that
  // is not needed.
  const found = [
    ...undeployedWallet(refused),
    ...mistakes.filter(
      ({ mistake }) =>
        (isMistakeId(mistake) || isChannelReason(mistake)) && (mistake !== "amount-zero" || isZeroRefused),
    ),
  ];
  // A body that was refused unread may contain more mistakes.
  const isUnread = request === undefined && reason !== undefined && isProblem(reason);
  // A finding that is only worth a look does not explain the refusal.
  const isAllSaid = found.some(isCause) && !isUnread && !isByCode;
  if (reason === undefined || isAllSaid) return found;
  const ofReason = explanationOfReason({ ...refused, reason });
  const { hasChains = true } = context;
  return [hasChains ? ofReason : { ...ofReason, fix: withoutLocal(ofReason.fix) }, ...found];
}

/** Explains a signature that only a wallet contract can make, refused because the payer's address has no code. */
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

/** Explains a refusal by its reason. `at` is the path of the field it is about, if it is a single one. */
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

/** Explains a payment whose response was lost. `ledger` is the state of its settlement, if known. */
export function explainLostAnswer(ledger: string | null): RefusalExplanation {
  const got = ledger === null ? {} : { got: `the ledger says: ${ledger}` };
  return explanationOf(finding("answer-lost", "", got));
}

/** Builds the verify or settle body for this payment, in the full form of its version; empty for an unknown payment method. */
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
  // A text that is not a request is better explained by the response.
  if (kind !== "request") return [];
  return findings.filter(({ got = "" }) => !isMasked(got)).map(explanationOf);
}

/** Completes a finding with the texts shared by all mistakes of its kind. */
export function explanationOf(found: Finding): RefusalExplanation {
  const { mistake, at, got, expected, fix, reason = mistake } = found;
  const known: Pick<Mistake, "situation" | "title" | "why"> = isMistakeId(mistake)
    ? mistakes[mistake]
    : { title: mistake, why: "" };
  const { situation = null, title, why } = { ...known, ...found };
  const more = errorsSection(reason);
  return { mistake, situation, title, at, got: got ?? null, expected: expected ?? null, why, fix, more };
}

/**
 * The chain reads that were made for a payment: none, whether its authorization was used, or also whether the payer can pay.
 */
export type KnownOfChain = "nothing" | "use" | "state";

/** Renders all explanations as text for a terminal. */
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

/** Renders one mistake as lines for a terminal: its title, then its indented facts. */
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

/** The section of the package's error guide, by the file's path on this machine; empty if the file is missing. */
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
