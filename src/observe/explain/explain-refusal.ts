import { buildBody } from "../../methods/exact-eip3009/payload.ts";
import { methodOf } from "../../methods/methods.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { adviceOnReason, errorsSection } from "../../protocol/catalogue-texts.ts";
import { type Finding, finding, isCause, mistakes } from "../../protocol/mistakes.ts";
import { isProblem } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { knownToken } from "../../protocol/token-units.ts";
import { isMasked } from "../../util/text.ts";
import { type ExplainContext, explain } from "./explain-input.ts";

/** A mistake in a payment, and its fix. */
export type RefusalExplanation = {
  /** One of `mistakes`, or else the reason of the refusal. */
  mistake: string;
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

/** What refusals are explained with. */
export type RefusalContext = Pick<ExplainContext, "contracts" | "networks" | "tokens"> & {
  /** Whether the chains have another time than this machine, as with a seed, or since their time was moved. */
  hasOwnClock?: (() => boolean) | undefined;
};

/** Reasons that are given when signature and times were right, or do not matter any more. */
const beyondTimes: readonly (string | undefined)[] = ["insufficient_funds", "invalid_transaction_state"];

/** The situations in which code at the payer's address decided, so that no key's signature is to be expected. */
const decidedByCode: readonly (string | undefined)[] = [
  "wallet_refuses",
  "token_refuses_signature",
  "payer_has_code",
];

/**
 * The time to judge a payment's own times by, unix seconds: the chain's where it was asked, else this machine's where that may
 * stand for it.
 */
function timeOf(
  { reason, chainTime, at }: RefusedRequest,
  { hasOwnClock }: RefusalContext,
): bigint | undefined {
  const isUnknown = hasOwnClock?.() === true || beyondTimes.includes(reason);
  if (chainTime !== undefined) return BigInt(chainTime);
  return isUnknown ? undefined : BigInt(Math.floor(at / 1000));
}

/** From so many seconds on, the times of two clocks differ by more than blocks and requests take. */
const clocksDiffer = 60;

/** How far the chain's clock is from this machine's, by which clients mostly sign; undefined where they agree. */
function oddClock(now: bigint, at: number): string | undefined {
  const ahead = Number(now) - Math.floor(at / 1_000);
  if (Math.abs(ahead) < clocksDiffer) return undefined;
  const how = ahead > 0 ? "ahead of" : "behind";
  return `the chain's clock, which is ${Math.abs(ahead)} s ${how} this machine's (a local chain's is put back by \`x402-kit reset\`)`;
}

/** Explains a refusal by the mistakes found in the payment, otherwise by the meaning of its reason. */
export function explainRefusal(refused: RefusedRequest, context: RefusalContext): RefusalExplanation[] {
  const { reason, situation, chainTime, request } = refused;
  const now = timeOf(refused, context);
  const isByCode = decidedByCode.includes(situation);
  // The chain's time is asked for a payment whose signature has held; a wallet that refuses one has decided itself.
  const signatureHeld = beyondTimes.includes(reason) || chainTime !== undefined || isByCode;
  const clock = now === undefined ? undefined : oddClock(now, refused.at);
  const judged = { ...context, now, clock, signatureHeld };
  const mistakes = findMistakes(bodyText(refused, context), judged);
  // A facilitator may be configured to settle payments of nothing.
  const isZeroRefused = reason === "invalid_payment_requirements";
  const found = mistakes.filter(({ mistake }) => mistake !== "amount-zero" || isZeroRefused);
  // A body that was refused unread may hold mistakes besides.
  const isUnread = request === undefined && reason !== undefined && isProblem(reason);
  // What is only worth a look is no cause.
  const isAllSaid = found.some(isCause) && !isUnread && !isByCode;
  if (reason === undefined || isAllSaid) return found;
  return [explanationOfReason({ ...refused, reason }), ...found];
}

/** What is said of a refusal whose reason alone is known. `at` is what it is about, where that is one member. */
export function explanationOfReason(
  { reason, message, situation }: Pick<RefusedRequest, "message" | "situation"> & { reason: string },
  at = "",
): RefusalExplanation {
  const { why, fix } = adviceOnReason(reason, situation) ?? { why: "", fix: "" };
  const more = errorsSection(reason);
  return { mistake: reason, title: message ?? reason, at, got: null, expected: null, why, fix, more };
}

/** What is said of a payment whose answer was lost. `ledger`: what is known of its settlement. */
export function explainLostAnswer(ledger: string | null): RefusalExplanation {
  const got = ledger === null ? {} : { got: `the ledger says: ${ledger}` };
  return explanationOf(finding("answer-lost", "", got));
}

/** The body of a verify or settle for this payment, in the full form of its version. */
export function requestBodyOf(
  request: PaymentRequest,
  { contracts, tokens }: Pick<ExplainContext, "contracts" | "tokens">,
): Record<string, unknown> {
  const { knownNetwork, requirements, payment, x402Version } = request;
  const known = knownToken(knownNetwork, requirements.asset, tokens) ?? knownNetwork.usdc;
  const parts = {
    x402Version,
    network: knownNetwork,
    asset: { ...known, address: requirements.asset },
    payTo: requirements.payTo ?? contracts[knownNetwork.tier],
    amount: requirements.amount,
    resource: "",
  };
  return buildBody(parts, methodOf(payment).write(payment));
}

function bodyText(
  { request, body, received }: Pick<RefusedRequest, "request" | "body" | "received">,
  context: Pick<ExplainContext, "contracts" | "tokens">,
): string | undefined {
  return request === undefined ? received : (body ?? JSON.stringify(requestBodyOf(request, context)));
}

function findMistakes(body: string | undefined, context: ExplainContext): RefusalExplanation[] {
  if (body === undefined) return [];
  const { kind, findings } = explain(body, context);
  // What is no request at all is told better by the answer.
  if (kind !== "request") return [];
  return findings.filter(({ got = "" }) => !isMasked(got)).map(explanationOf);
}

/** A finding with what is said of every mistake of its kind. */
export function explanationOf(found: Finding): RefusalExplanation {
  const { mistake, at, got, expected, fix, reason = mistake } = found;
  const { title, why } = { ...mistakes[mistake], ...found };
  const more = errorsSection(reason);
  return { mistake, title, at, got: got ?? null, expected: expected ?? null, why, fix, more };
}
