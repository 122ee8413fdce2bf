import { methods } from "../../methods/methods.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import {
  explainLostAnswer,
  explainRefusal,
  type RefusalContext,
  type RefusalExplanation,
} from "../explain/explain-refusal.ts";
import { shownBody } from "./payment-body.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { OperationView, PaymentDetail, PaymentSummary, TransactionView } from "./payment-view.ts";
import { explainReceived, explainUse, receivedView, settledHere, usedReason } from "./refusal-details.ts";

/**
 * All that is known of a payment, with what is wrong with it. Its chain, where there is one to ask, says how its
 * authorization was used elsewhere.
 */
export async function describePayment(
  payment: LoggedPayment,
  context: RefusalContext,
  chain: Pick<PaymentChain, "authorizationUse" | "timeAt"> | undefined,
): Promise<PaymentDetail> {
  const use = mayBeUsedElsewhere(payment) ? await chain?.authorizationUse(payment) : undefined;
  const { request } = payment;
  const method = methods.find(({ name }) => name === request?.payment.method);
  const signedMembers = request && (await method?.describe(request.payment));
  return detailOf(payment, context, { use, chainTime: chainTimeOf(payment, chain), signedMembers });
}

/** The chain's time when the newest settle, or else verify, was judged: as it was compared with, or as blocks were seen. */
function chainTimeOf(
  { summary, timeline }: LoggedPayment,
  chain: Pick<PaymentChain, "timeAt"> | undefined,
): bigint | undefined {
  const { settle, verify, network, firstSeenAt } = summary;
  const { chainTime = null } = settle ?? verify ?? {};
  if (chainTime !== null) return BigInt(chainTime);
  if (network === null) return undefined;
  const operation = settle === null ? "verify" : "settle";
  const asked = timeline.findLast(({ kind, title }) => kind === "request" && title.endsWith(operation));
  const judged = timeline.findLast(
    ({ kind, requestId }) => kind === "check" && requestId === asked?.requestId,
  );
  return chain?.timeAt?.(network, (judged ?? asked)?.at ?? firstSeenAt);
}

/**
 * All that is known of a payment, with what is wrong with it.
 *
 * @param known what was signed, and what the chain said: how its authorization was used before, where
 * {@link mayBeUsedElsewhere}, and its time
 */
function detailOf(
  payment: LoggedPayment,
  context: RefusalContext,
  {
    use,
    chainTime,
    signedMembers,
  }: {
    use: PaymentUse | undefined;
    chainTime: bigint | undefined;
    signedMembers: PaymentDetail["signedMembers"] | undefined;
  },
): PaymentDetail {
  const { summary, request, body, received, answers, timeline, omitted } = payment;
  return {
    ...summary,
    signed: signedMembers
      ? Object.fromEntries(signedMembers.map(({ label, value }) => [label, value]))
      : null,
    signedMembers: signedMembers ?? [],
    required: request === undefined ? null : termsOf(request),
    chainTime: chainTime === undefined ? null : `${chainTime}`,
    body: request === undefined ? null : shownBody({ request, body }, context, withoutSignature),
    received: received === undefined ? null : receivedView(received),
    answers,
    timeline: timeline.toSorted((a, b) => a.at - b.at),
    omitted,
    explanations: explanationsOf(payment, context, use),
  };
}

function withoutSignature(signature: string): string {
  return `0x (${(signature.length - 2) / 2} bytes that are not shown)`;
}

function termsOf({ requirements: { amount, asset, payTo } }: PaymentRequest): Record<string, string> {
  return { amount: `${amount}`, asset, ...(payTo !== undefined && { payTo }) };
}

/** The refusals behind which an earlier use may be: of an expired authorization the service does not ask for one. */
const refusalsOfUsed: ReadonlySet<string | null> = new Set([
  usedReason,
  "invalid_exact_evm_payload_authorization_valid_before",
]);

/** What the ledger says last of a settlement that failed and was not recovered, as far as is known. */
const stepsOfFailed: ReadonlySet<string | null> = new Set(["failed", "recoveryQueued", "recoveryPostponed"]);

/**
 * Whether a payment was refused and nothing that was seen here tells that its authorization is unused: it may have been
 * used straight on the token, or before this process began. That also makes settles fail that were answered as pending.
 */
function mayBeUsedElsewhere({ summary, timeline }: Pick<LoggedPayment, "summary" | "timeline">): boolean {
  const refused = refusedOperation(summary);
  if (refused === undefined || settledHere(timeline) !== undefined) return false;
  return refusalsOfUsed.has(refused.reason) || stepsOfFailed.has(summary.ledger);
}

function refusedOperation({ settle, verify }: PaymentSummary): OperationView | undefined {
  const refused = [settle, verify].find(
    (operation) => operation !== null && !["open", "valid", "settled"].includes(operation.outcome),
  );
  return refused ?? undefined;
}

/** Whether the caller left, and not because its request could not be read. */
function isAbandoned({ outcome, reason }: OperationView): boolean {
  return outcome === "abandoned" && reason === null;
}

/** Why the newest of its refusals was one. */
function explanationsOf(
  { summary, request, body, received, timeline }: LoggedPayment,
  context: RefusalContext,
  use: PaymentUse | undefined,
): RefusalExplanation[] {
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
  // Not when it was last seen: clocks are compared by the time of this very answer.
  const answered = {
    ...{ reason: reason ?? undefined, message: message ?? undefined },
    ...{ situation: situation ?? undefined, chainTime: chainTime ?? undefined },
    at: at ?? summary.lastSeenAt,
  };
  if (received !== undefined) return explainReceived(answered, received, context);
  const explanations = explainRefusal({ ...answered, request, body }, context);
  if (reason !== usedReason && use === undefined) return explanations;
  const own = explanations.find(({ mistake }) => mistake === usedReason);
  const before = explainUse(settledHere(timeline) ?? use, summary.token, own);
  if (before === undefined) return explanations;
  return [before, ...explanations.filter(({ mistake }) => mistake !== usedReason)];
}

/** What the chain of a payment says of it. It is asked when a person looks at the payment, and for no verdict. */
export type PaymentChain = {
  /**
   * The newest transaction that carried the payment.
   *
   * @throws {KitError} when there is none, or the node does not know it
   */
  transaction(payment: LoggedPayment): Promise<TransactionView>;
  /** How its authorization was used; undefined where that could not be found out soon. Never throws. */
  authorizationUse(payment: Pick<LoggedPayment, "request" | "summary">): Promise<PaymentUse | undefined>;
  /** The chain's time, unix seconds, at a time in unix milliseconds, where blocks and their times are remembered. */
  timeAt?(network: string, at: number): bigint | undefined;
};
