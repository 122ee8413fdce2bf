import { type Hex, sameAddress } from "../../../src/protocol/hex.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import type { Composition, Running } from "../composition.ts";
import type { Findings } from "../tally.ts";
import { transfersSince } from "../transfers.ts";
import type { WayPayment } from "../ways.ts";
import type { Kind } from "./kinds.ts";

/** The responses to a payment, to verify and to settle up to the verdict, and its transactions on chain at that time. */
export type Told = {
  payment: WayPayment;
  verify: JsonResponse;
  settles: readonly JsonResponse[];
  shown: readonly string[];
};

/** Compares the responses and the ledger with the chain. */
export async function judge(
  {
    composition,
    running,
    kind,
    paid,
  }: { composition: Composition; running: Running; kind: Kind; paid: bigint },
  told: readonly Told[],
): Promise<Findings> {
  const findings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };
  let due = 0n;
  for (const { payment, verify, settles, shown: shownThen } of told) {
    const shown = await hashesOnChain(composition, payment);
    const ledger = await inLedger(running, payment);
    const movesNothing = payment.due === 0n;
    const last = settles.at(-1);
    const verdict = (last?.body ?? {}) as { success?: boolean; transaction?: string };
    const describe = () =>
      `${payment.way.name}: chain ${shown}; ledger ${ledger.state} ${ledger.transaction}; answers ${settles.map(brief).join(" → ")}`;
    due += BigInt(shown.length) * payment.due;

    if (shown.length > 1) findings.paidTwice.push(describe());
    if (last?.status !== 200) findings.lost.push(`no verdict: ${describe()}`);
    const succeeded = last?.status === 200 && verdict.success === true;
    // If nothing is moved, there is no transaction, and none is needed.
    const [then = movesNothing ? "" : undefined] = shownThen;
    const [now = movesNothing ? "" : undefined] = shown;
    if (succeeded && (verdict.transaction !== then || verdict.transaction !== now))
      findings.wrongAnswers.push(`false success: ${describe()}`);
    if (last?.status === 200 && succeeded !== (movesNothing || kind.outcome !== "failed"))
      findings.wrongAnswers.push(describe());
    const isMade = shown.length === 1 || movesNothing;
    if (ledger.state !== (isMade ? "settled" : "failed") || (isMade && ledger.transaction !== now)) {
      (isMade ? findings.lost : findings.wrongAnswers).push(`the ledger is wrong: ${describe()}`);
    }
    for (const answer of settles.slice(0, -1)) {
      if (!isUndecided(answer))
        findings.wrongAnswers.push(`${brief(answer)} before the verdict: ${describe()}`);
    }
    const verified = (verify.body as { isValid?: boolean }).isValid === true;
    if (verify.status !== 503 && !(verify.status === 200 && verified)) {
      findings.wrongAnswers.push(`verify: ${brief(verify)}`);
    }
  }
  if (paid !== due) findings.paidTwice.push(`the recipient was paid ${paid}, and ${due} was taken of payers`);
  for (const hash of new Set(told.flatMap(({ shown }) => shown))) {
    const bytes = await sizeOf(composition, hash);
    if (bytes > mostTransactionBytes)
      findings.lost.push(`${hash} has ${bytes} bytes: Ethereum's nodes would not have taken it`);
  }
  const answers = told.flatMap(({ settles }) => settles);
  const isMissing =
    (kind.alsoAnswers === "pending" && !answers.some(isPending)) ||
    (kind.alsoAnswers === "undecided" && !answers.some(isUndecided));
  if (isMissing) findings.wrongAnswers.push(`never ${kind.alsoAnswers}: ${answers.map(brief).join(" → ")}`);
  return findings;
}

/** The limit in geth, op-geth, bor and reth; anvil's is higher. */
const mostTransactionBytes = 128 * 1024;

/** The size of a transaction's calldata in bytes. */
async function sizeOf({ chain }: Composition, hash: string): Promise<number> {
  const transaction = await chain.node.request("eth_getTransactionByHash", hash);
  const { input } = transaction as { input: Hex };
  return input.length / 2 - 1;
}

/** Returns true if a response is a 503 without a verdict. In version 2, a pending one names its transaction. */
function isUndecided({ status, body }: JsonResponse): boolean {
  const { success, errorReason, transaction } = Object(body);
  const isVague = errorReason === "unexpected_settle_error" && transaction === "";
  const isUnderWay = errorReason === "settlement_pending" && /^0x[0-9a-f]{64}$/.test(transaction);
  return status === 503 && success === false && (isVague || isUnderWay);
}

/** Returns true if a settle response says that the payment is pending. */
export function isPending(answer: JsonResponse): boolean {
  return isUndecided(answer) && answer.headers["x-settlement-state"] === "pending";
}

function brief({ status, body }: JsonResponse): string {
  const { success, isValid, errorReason, invalidReason, errorMessage, transaction } = Object(body);
  return [status, success ?? isValid, errorReason ?? invalidReason, errorMessage, transaction]
    .filter((part) => part !== undefined && part !== "")
    .join(" ");
}

/** The transactions that took a payment from its payer. */
export async function hashesOnChain({ chain }: Composition, { payer, due }: WayPayment): Promise<string[]> {
  return (await transfersSince(chain, 0))
    .filter(({ from, value }) => due > 0n && sameAddress(from, payer) && value === due)
    .map(({ transaction }) => transaction);
}

/** A service's answer about the settlement of a payment. */
export async function inLedger(
  { url, key }: Pick<Running, "url" | "key">,
  { id }: WayPayment,
): Promise<{ state?: string; transaction?: string }> {
  const { body } = await requestJson(`${url}/settlements/${id}`, { headers: { authorization: key } });
  return Object(body);
}
