import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { errorsSection, reasonTexts } from "../../protocol/catalogue-texts.ts";
import { findJsonProblem } from "../../protocol/json-problem.ts";
import { bodyLimit } from "../../protocol/problems.ts";
import { formatAmount } from "../../protocol/token-units.ts";
import { nameOfTestPayer } from "../../published/test-payers.ts";
import { mostReceived, type ReceivedBody } from "../channels/channels.ts";
import {
  explainRefusal,
  type RefusalContext,
  type RefusalExplanation,
  type RefusedRequest,
} from "../explain/explanations.ts";
import type { PaymentSummary, ReceivedView, TimelineEntry } from "./payment-view.ts";

/** The reason that payments are refused for whose authorization was used. */
export const usedReason = "invalid_transaction_state";

/** A settlement of this service, as its ledger says. */
export type SettledHere = {
  /** Unix milliseconds. */
  readonly settledAt: number;
  /** Undefined where nothing was to be taken. */
  readonly transaction: string | undefined;
  readonly organization: string | undefined;
};

/** How a payment was settled by the service whose timeline this is; undefined if it was not. */
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
 * Says when an authorization was used, in which transaction and by whom, and what to do.
 *
 * @param general what is said of the refusal without that
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
    ...{ mistake: usedReason, more: errorsSection(usedReason), ...general },
    ...{ title: "The authorization was used before", at: "authorization.nonce" },
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
      ...{ ...known, title: "The authorization was cancelled", got: `cancelled ${where}` },
      why: "The payer cancelled it on the token: nothing was paid, and it can never be used.",
      fix: "Have the payer sign a payment with a new nonce.",
    };
  }
  const value = moved && `, which moved ${formatAmount(moved.value, units)} to ${withName(moved.to)}`;
  return {
    ...{ ...known, got: `used ${where}${value ?? ""}` },
    why: "Everyone who has a signed authorization can submit it to the token, not only this facilitator, which did not settle this one.",
    fix: "Do not ask the payer again before you know where the value went: what reached the facilitator contract is recovered for the organization that had claimed it (`x402-kit stranded` lists the rest). For another payment, sign with a new nonce.",
  };
}

function withName(account: string): string {
  const name = nameOfTestPayer(account);
  return name === undefined ? account : `${account} (the test payer ${name})`;
}

/** Why a request was refused in whose body no payment could be read: what its answer says with the place, and what else is wrong. */
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
export function receivedView({ text, bytes, isWhole, contentType }: ReceivedBody): ReceivedView {
  const found = findJsonProblem(text);
  // The end of a part is no problem of the whole.
  const problem = found !== undefined && (isWhole || found.offset < text.length) ? found : null;
  return { text, bytes, isWhole, contentType: contentType ?? null, problem };
}

const sendWhole =
  "Send the whole body, with its length in bytes as content-length, and wait for the answer. Nothing was done.";

const sendPlain = "Send the body as plain JSON, without content-encoding.";

function isJson(contentType: string | null): boolean {
  return /^application\/json\s*(;|$)/i.test(contentType ?? "");
}

/** Where a body is no JSON, or of which type it is said to be, where that is why it was refused. */
function withPlace(explanation: RefusalExplanation, received: ReceivedView): RefusalExplanation {
  const { problem, contentType, bytes, isWhole, text } = received;
  switch (explanation.mistake) {
    case "malformed-request":
      if (!isWhole && bytes <= bodyLimit && text.length < mostReceived) {
        return { ...explanation, got: `${bytes} bytes`, fix: sendWhole };
      }
      if (problem === null) return explanation;
      return { ...explanation, at: `line ${problem.line}, column ${problem.column}`, got: problem.found };
    case "unsupported-media-type":
      // What is compressed is refused as well; its answer names the encoding.
      if (isJson(contentType)) return { ...explanation, at: "content-encoding", fix: sendPlain };
      return { ...explanation, at: "content-type", got: contentType ?? "none", expected: "application/json" };
    case "body-too-large":
      return { ...explanation, got: `${bytes} bytes or more`, expected: `at most ${bodyLimit} bytes` };
    default:
      return explanation;
  }
}
