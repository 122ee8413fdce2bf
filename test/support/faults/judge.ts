import { authorizationUsedTopic } from "../../../src/methods/exact-eip3009/on-chain/events.ts";
import { type Address, addressWord, type Hex } from "../../../src/protocol/hex.ts";
import { settlementId } from "../../../src/protocol/signed-payment.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import type { Composition, Running } from "../composition.ts";
import type { Body } from "../service.ts";
import type { Findings } from "../tally.ts";
import type { Kind } from "./kinds.ts";

/**
 * The answers to one payment: of verify, and of settle until there was a verdict; and its transactions on chain at
 * that time.
 */
export type Told = {
  body: Body;
  verify: JsonResponse;
  settles: readonly JsonResponse[];
  shown: readonly string[];
};

/** Compares the answers and the ledger with the chain. */
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
  let transfers = 0n;
  for (const { body, verify, settles, shown: shownThen } of told) {
    const { authorization } = body.paymentPayload.payload;
    const shown = await hashesOnChain(composition, body);
    const ledger = await inLedger(composition, running, authorization);
    const last = settles.at(-1);
    const verdict = (last?.body ?? {}) as { success?: boolean; transaction?: string };
    const describe = () =>
      `chain ${shown}; ledger ${ledger.state} ${ledger.transaction}; answers ${settles.map(brief).join(" → ")}`;
    transfers += BigInt(shown.length);

    if (shown.length > 1) findings.paidTwice.push(describe());
    if (last?.status !== 200) findings.lost.push(`no verdict: ${describe()}`);
    const succeeded = last?.status === 200 && verdict.success === true;
    if (succeeded && (verdict.transaction !== shownThen[0] || verdict.transaction !== shown[0]))
      findings.wrongAnswers.push(`false success: ${describe()}`);
    if (last?.status === 200 && succeeded !== (kind.outcome !== "failed"))
      findings.wrongAnswers.push(describe());
    const expected = shown.length === 1 ? "settled" : "failed";
    if (ledger.state !== expected || (expected === "settled" && ledger.transaction !== shown[0])) {
      (shown.length === 1 ? findings.lost : findings.wrongAnswers).push(`the ledger is wrong: ${describe()}`);
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
  if (paid !== transfers * 10_000n) {
    findings.paidTwice.push(`the recipient was paid ${paid} for ${transfers} payments of 10000`);
  }
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

/** The limit of geth, op-geth, bor and reth; anvil has none this low. */
const mostTransactionBytes = 128 * 1024;

/** The bytes of a transaction's calldata. */
async function sizeOf({ chain }: Composition, hash: string): Promise<number> {
  const transaction = await chain.node.request("eth_getTransactionByHash", hash);
  const { input } = transaction as { input: Hex };
  return input.length / 2 - 1;
}

/** Whether an answer is a 503 without a verdict. In version 2, a pending one names its transaction. */
function isUndecided({ status, body }: JsonResponse): boolean {
  const { success, errorReason, transaction } = Object(body);
  const isVague = errorReason === "unexpected_settle_error" && transaction === "";
  const isUnderWay = errorReason === "settlement_pending" && /^0x[0-9a-f]{64}$/.test(transaction);
  return status === 503 && success === false && (isVague || isUnderWay);
}

function isPending(answer: JsonResponse): boolean {
  return isUndecided(answer) && answer.headers["x-settlement-state"] === "pending";
}

function brief({ status, body }: JsonResponse): string {
  const { success, isValid, errorReason, invalidReason, errorMessage, transaction } = Object(body);
  return [status, success ?? isValid, errorReason ?? invalidReason, errorMessage, transaction]
    .filter((part) => part !== undefined && part !== "")
    .join(" ");
}

/** The transactions with the token's `AuthorizationUsed` for this authorization. */
export async function hashesOnChain({ chain }: Composition, body: Body): Promise<string[]> {
  const { from, nonce }: { from: Address; nonce: Hex } = body.paymentPayload.payload.authorization;
  const topics = [authorizationUsedTopic, `0x${addressWord(from)}`, nonce];
  const filter = { address: chain.asset.address, fromBlock: "0x0", toBlock: "latest", topics };
  const logs = (await chain.node.request("eth_getLogs", filter)) as { transactionHash: string }[];
  return logs.map(({ transactionHash }) => transactionHash);
}

/** What a service says of the settlement of an authorization. */
export async function inLedger(
  { chain }: Composition,
  { url, key }: Pick<Running, "url" | "key">,
  { from, nonce }: { from: Address; nonce: Hex },
): Promise<{ state?: string; transaction?: string }> {
  const id = settlementId(chain.network.chainId, chain.asset.address, from, nonce);
  const { body } = await requestJson(`${url}/settlements/${id}`, { headers: { authorization: key } });
  return Object(body);
}
