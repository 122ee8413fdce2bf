import { methods } from "../../methods/methods.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { viewOf } from "../../methods/people.ts";
import { nameOfTestPayer } from "../../payer/test-payers.ts";
import { isDecidedBy } from "../../protocol/catalogue.ts";
import { errorsSection, reasonTexts } from "../../protocol/catalogue-texts.ts";
import { type Address, type Hex, isBytes } from "../../protocol/hex.ts";
import { findJsonProblem } from "../../protocol/json-problem.ts";
import { bodyLimit } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { formatAmount, plural } from "../../protocol/token-units.ts";
import { isRecord } from "../../protocol/wire-values.ts";
import { parseJson } from "../../util/json.ts";
import { maskSecrets } from "../../util/text.ts";
import { mostReceived, type ReceivedBody } from "../channels/channels.ts";
import type { Deployment } from "../explain/deployment.ts";
import { exchangesOf, explainAtShop } from "../explain/explain-shop-exchange.ts";
import {
  explainLostAnswer,
  explainRefusal,
  explanationOf,
  type RefusalContext,
  type RefusalExplanation,
  type RefusedRequest,
  requestBodyOf,
} from "../explain/explanations.ts";
import type {
  OperationView,
  PaymentDetail,
  PaymentSummary,
  ReceivedView,
  TimelineEntry,
  TransactionView,
} from "../timeline/payment-view.ts";
import { chainTimeOf, type PaymentRecord, receivedIn } from "../timeline/record.ts";
import { linesOf, newestRecords, summaryOf } from "../timeline/summary.ts";
import type { Timeline } from "../timeline/timeline.ts";

/** The reason of refusals because the authorization was used. */
const usedReason = "invalid_transaction_state";

/**
 * Describes everything known about a payment, including its problems. If its chain can be read, finds out how its
 * authorization was used elsewhere.
 */
export async function describePayment(
  record: PaymentRecord,
  context: RefusalContext,
  chain: Pick<PaymentChain, "authorizationUse"> | undefined,
): Promise<PaymentDetail> {
  const { request } = record;
  const summary = summaryOf(record, context);
  const { timeline, omitted } = linesOf(record);
  const use = mayBeUsedElsewhere(summary, timeline) ? await chain?.authorizationUse(record) : undefined;
  const method = methods.find(({ name }) => name === request?.payment.method);
  const signedMembers = (request && (await method?.describe(request.payment))) ?? [];
  const received = receivedIn(record);
  const chainTime = (summary.settle ?? summary.verify)?.chainTime ?? chainTimeOf(record);
  return {
    ...summary,
    method: method?.name ?? null,
    way: method === undefined ? null : viewOf(method),
    signed:
      method === undefined
        ? null
        : Object.fromEntries(signedMembers.map(({ label, value }) => [label, value])),
    signedMembers,
    required: request === undefined ? null : termsOf(request),
    chainTime: chainTime === undefined ? null : `${chainTime}`,
    body: request === undefined ? null : shownBody(record, request, context, withoutSignature),
    received: received === undefined ? null : receivedView(received),
    answers: newestAnswers(record),
    exchanges: exchangesOf(record),
    timeline,
    omitted,
    explanations: explainRecord(record, context, use),
  };
}

/** Describes the newest payments, including those from an earlier run, newest first and at most `most`. Reads no chain. */
export async function describeNewest(
  timeline: Pick<Timeline, "records" | "earlier">,
  context: RefusalContext,
  most: number,
): Promise<PaymentDetail[]> {
  // A payment that cannot be described does not hide the others.
  const described = await Promise.allSettled(
    newestRecords(timeline, most).map((record) => describePayment(record, context, undefined)),
  );
  return [
    ...described.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])),
    ...timeline.earlier(),
  ].slice(0, most);
}

/** The newest answer to each operation. */
function newestAnswers({ entries }: PaymentRecord): PaymentDetail["answers"] {
  const newest = new Map<string, PaymentDetail["answers"][number]>();
  for (const entry of entries) {
    if (entry.kind !== "answer") continue;
    const { operation, status, answer: body } = entry;
    if (status !== undefined && body !== undefined) newest.set(operation, { operation, status, body });
  }
  return [...newest.values()];
}

function withoutSignature(signature: string): string {
  return `0x (${(signature.length - 2) / 2} bytes that are not shown)`;
}

function termsOf({ requirements: { amount, asset, payTo } }: PaymentRequest): Record<string, string> {
  return { amount: `${amount}`, asset, ...(payTo !== undefined && { payTo }) };
}

/** The last ledger step of a settlement that failed and was not recovered. */
const stepsOfFailed: ReadonlySet<string | null> = new Set(["failed", "recoveryQueued", "recoveryPostponed"]);

/**
 * True if a payment was refused, or its settlement failed, and it was not settled here: its authorization may have
 * been submitted directly to the token, or before this process started.
 */
function mayBeUsedElsewhere(summary: PaymentSummary, timeline: PaymentDetail["timeline"]): boolean {
  const refused = refusedOperation(summary);
  if (refused === undefined || settledHere(timeline) !== undefined) return false;
  return mayHideUse(refused) || stepsOfFailed.has(summary.ledger);
}

/** True if an earlier use may be behind a refusal. The service does not look for one if the authorization has expired. */
function mayHideUse(refused: OperationView): boolean {
  return refused.reason === usedReason || isDecidedBy(refused, "time");
}

function refusedOperation({ settle, verify }: PaymentSummary): OperationView | undefined {
  const refused = [settle, verify].find(
    (operation) => operation !== null && !["open", "valid", "settled"].includes(operation.outcome),
  );
  return refused ?? undefined;
}

/** True if the caller left, and not because its request could not be read. */
function isAbandoned({ outcome, reason }: OperationView): boolean {
  return outcome === "abandoned" && reason === null;
}

/**
 * Explains a payment's newest refusal, and any problems at the shop.
 *
 * @param use how its authorization was used elsewhere, if known
 */
export function explainRecord(
  record: PaymentRecord,
  context: RefusalContext,
  use?: PaymentUse,
): RefusalExplanation[] {
  const summary = summaryOf(record, context);
  const { verify, settle, settledAt } = summary;
  // A payment whose settle is in progress counts as neither.
  const isUnsettled = settle === null && verify?.outcome === "valid";
  const decided = { isUnsettled, isSettled: settledAt !== null };
  const refused = explainRefused(record, summary, context, use);
  const known = new Set(refused.map(({ mistake }) => mistake));
  const atShop = explainAtShop(record, decided, context).map(explanationOf);
  return [...refused, ...atShop.filter(({ mistake }) => !known.has(mistake))];
}

/** Explains a payment's newest refusal. */
function explainRefused(
  record: PaymentRecord,
  summary: PaymentSummary,
  context: RefusalContext,
  use: PaymentUse | undefined,
): RefusalExplanation[] {
  const { request, body } = record;
  const received = receivedIn(record);
  const { unrouted } = summary;
  if (unrouted !== null) {
    const reason = unrouted.status === 404 ? "not-found" : "method-not-allowed";
    return explainRefusal({ reason, message: unrouted.message, request, at: summary.lastSeenAt }, context);
  }
  const refused = refusedOperation(summary);
  const isLost = refused === undefined ? summary.delivered === false : isAbandoned(refused);
  if (isLost) return [explainLostAnswer(summary.ledger)];
  if (refused === undefined) return [];
  const { reason, message, situation, chainTime, at } = refused;
  // Use the time of this answer, not `lastSeenAt`: clocks are compared by it.
  const answered = {
    reason: reason ?? undefined,
    message: message ?? undefined,
    situation: situation ?? undefined,
    chainTime: chainTime ?? undefined,
    at: at ?? summary.lastSeenAt,
  };
  if (received !== undefined) return explainReceived(answered, received, context);
  const explanations = explainRefusal({ ...answered, request, body }, context);
  if (reason !== usedReason && use === undefined) return explanations;
  const own = explanations.find(({ mistake }) => mistake === usedReason);
  const before = explainUse(settledHere(linesOf(record).timeline) ?? use, summary.token, own);
  if (before === undefined) return explanations;
  return [before, ...explanations.filter(({ mistake }) => mistake !== usedReason)];
}

/** Reads the chain's state for a person who looks at a payment, never to decide about the payment. */
export type PaymentChain = {
  /**
   * The newest transaction that carried the payment.
   *
   * @throws {KitError} if there is none, or the node does not know it
   */
  transaction(record: PaymentRecord): Promise<TransactionView>;
  /** How its authorization was used; undefined if that could not be found out quickly. Never throws. */
  authorizationUse(record: PaymentRecord): Promise<PaymentUse | undefined>;
  /** The sum claimed for a receiver and not yet paid out; undefined if unknown. */
  owed?(network: string, receiver: Address, token: Address): Promise<bigint | undefined>;
};

/** The body of a payment's newest request: as received, otherwise rebuilt from the payment. */
export function bodyOf(
  { body }: Pick<PaymentRecord, "body">,
  request: PaymentRequest,
  context: Deployment,
): Record<string, unknown> {
  const came = body === undefined ? undefined : parseJson(body);
  return isRecord(came) ? came : requestBodyOf(request, context);
}

/** Like {@link bodyOf}, for people: signatures are replaced, and anything else that may be a secret is masked. */
export function shownBody(
  record: Pick<PaymentRecord, "body">,
  request: PaymentRequest,
  context: Deployment,
  cut: (signature: Hex) => string,
): Record<string, unknown> {
  const signature = request.payment.signature.toLowerCase();
  // Vouchers and claim authorizations contain signatures as well.
  return mask(bodyOf(record, request, context), (text, name) =>
    isBytes(text) && (text.toLowerCase() === signature || /signature$/i.test(name)) ? cut(text) : undefined,
  );
}

function mask(
  members: Record<string, unknown>,
  cut: (text: string, name: string) => string | undefined,
): Record<string, unknown> {
  const masked = (value: unknown, name: string): unknown => {
    if (typeof value === "string") return cut(value, name) ?? maskMember(name, value);
    if (Array.isArray(value)) return value.map((one) => masked(one, name));
    return isRecord(value) ? mask(value, cut) : value;
  };
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, masked(value, name)]));
}

/** Masks secrets. The member's name may show that its text is one. */
function maskMember(name: string, text: string): string {
  const before = `"${name}":"`;
  // Masking reads JSON, in which a quotation mark would end the text.
  const masked = maskSecrets(`${before}${text.replaceAll('"', "'")}"`).slice(before.length, -1);
  return masked.includes("•") ? masked : text;
}

/** A settlement by this service, from its ledger. */
export type SettledHere = {
  /** Unix milliseconds. */
  readonly settledAt: number;
  /** Undefined if there was nothing to take. */
  readonly transaction: string | undefined;
  readonly organization: string | undefined;
};

/** How this timeline's own service settled a payment; undefined if it did not. */
export function settledHere(timeline: readonly TimelineEntry[]): SettledHere | undefined {
  const isPaid = ({ kind, title }: TimelineEntry) =>
    kind === "ledger" && (title === "settled" || title === "recovered");
  const paid = timeline.findLast(isPaid);
  if (paid === undefined) return undefined;
  const owner = timeline.findLast(({ title }) => title === "claimed")?.details.organizationId;
  const organization = owner === undefined ? undefined : `${owner}`;
  const { transaction } = paid.details;
  return {
    settledAt: paid.at,
    transaction: typeof transaction === "string" ? transaction : undefined,
    organization,
  };
}

/**
 * Explains when an authorization was used, in which transaction and by whom, and what to do.
 *
 * @param general the texts to use where the use itself adds nothing
 */
export function explainUse(
  use: SettledHere | PaymentUse | undefined,
  units: PaymentSummary["token"],
  general: Pick<RefusalExplanation, "why" | "fix"> & Partial<RefusalExplanation> = {
    why: reasonTexts[usedReason].meaning,
    fix: reasonTexts[usedReason].fix,
  },
): RefusalExplanation | undefined {
  if (use === undefined) return undefined;
  const known = {
    mistake: usedReason,
    situation: null,
    more: errorsSection(usedReason),
    ...general,
    title: "The authorization was used before",
    at: "authorization.nonce",
    expected: "a nonce that was never used",
  };
  if ("settledAt" in use) {
    const { settledAt, transaction, organization } = use;
    const where =
      transaction === undefined
        ? "without a transaction, as nothing was to be taken"
        : `in transaction ${transaction}`;
    const whose = organization === undefined ? "" : ` for ${organization}`;
    return {
      ...known,
      got: `settled at ${new Date(settledAt).toISOString()} ${where}${whose}`,
    };
  }
  const { kind, transaction, blockNumber, timestamp, sender, to, moved } = use;
  const when = new Date(Number(timestamp) * 1_000).toISOString();
  const who = sender === null ? "" : `, sent by ${withName(sender)}`;
  const through = to === null ? "" : ` to the contract ${to}`;
  const where = `at ${when} in transaction ${transaction} of block ${blockNumber}${who}${through}`;
  if (kind === "cancelled") {
    return {
      ...known,
      title: "The authorization was cancelled",
      got: `cancelled ${where}`,
      why: "The payer cancelled it on the token: nothing was paid, and it can never be used.",
      fix: "Have the payer sign a payment with a new nonce.",
    };
  }
  const value = moved && `, which moved ${formatAmount(moved.value, units)} to ${withName(moved.to)}`;
  return {
    ...known,
    got: `used ${where}${value ?? ""}`,
    why: "Everyone who has a signed authorization can submit it to the token, not only this facilitator, which did not settle this one.",
    fix: "Do not ask the payer again before you know where the value went: what reached the facilitator contract is recovered for the organization that had claimed it (`x402-kit stranded` lists the rest). For another payment, sign with a new nonce.",
  };
}

function withName(account: string): string {
  const name = nameOfTestPayer(account);
  return name === undefined ? account : `${account} (the test payer ${name})`;
}

/** Explains why a request without a readable payment was refused, with the position of the fault. */
export function explainReceived(
  answered: Omit<RefusedRequest, "request" | "received">,
  received: ReceivedBody,
  context: RefusalContext,
): RefusalExplanation[] {
  const whole = received.isWhole ? received.text : undefined;
  const explanations = explainRefusal({ ...answered, request: undefined, received: whole }, context);
  return explanations.map((one) => withPlace(one, receivedView(received)));
}

/** The body as it is shown. */
function receivedView({ text, bytes, isWhole, contentType }: ReceivedBody): ReceivedView {
  const found = findJsonProblem(text);
  // If the body was cut, JSON that stops at the cut is not a fault.
  const problem = found !== undefined && (isWhole || found.offset < text.length) ? found : null;
  return { text, bytes, isWhole, contentType: contentType ?? null, problem };
}

const sendWhole =
  "Send the whole body, with its length in bytes as content-length, and wait for the answer. Nothing was done.";

const sendPlain = "Send the body as plain JSON, without content-encoding.";

function isJson(contentType: string | null): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}

/** Adds the details of the body that explain the refusal: the position of the JSON fault, the media type, or the size. */
function withPlace(explanation: RefusalExplanation, received: ReceivedView): RefusalExplanation {
  const { problem, contentType, bytes, isWhole, text } = received;
  switch (explanation.mistake) {
    case "malformed-request":
      if (!isWhole && bytes <= bodyLimit && text.length < mostReceived) {
        return { ...explanation, got: plural(bytes, "byte"), fix: sendWhole };
      }
      if (problem === null) return explanation;
      return { ...explanation, at: `line ${problem.line}, column ${problem.column}`, got: problem.found };
    case "unsupported-media-type":
      // A compressed body is refused as well; the answer names the encoding.
      if (isJson(contentType)) return { ...explanation, at: "content-encoding", fix: sendPlain };
      return { ...explanation, at: "content-type", got: contentType ?? "none", expected: "application/json" };
    case "body-too-large":
      return { ...explanation, got: `${bytes} bytes or more`, expected: `at most ${bodyLimit} bytes` };
    default:
      return explanation;
  }
}
