import { encodeIsValidSignature, isValidSignatureSelector } from "../../chain/views.ts";
import { methodOf } from "../../methods/methods.ts";
import { askPayerState, paymentIn, rewindPayerState } from "../../methods/on-chain/payer-state.ts";
import { type Hex, quantity, readQuantity } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isErc6492 } from "../../protocol/signed-payment.ts";
import { KitError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { kitVersion } from "../../util/self-command.ts";
import type { ExplainContext } from "../explain/explain-input.ts";
import { shownBody } from "../studio/payment-detail.ts";
import { newestJudged, type PaymentRecord } from "../timeline/record.ts";
import { linesOf, summaryOf } from "../timeline/summary.ts";
import type { Capture, CapturedChain } from "./capture.ts";
import { readPayerState, writePayerState } from "./capture.ts";
import type { ReadableChain } from "./chain-questions.ts";

/** Replaces a signature that is left out of a capture. */
const cutSignature: Hex = `0x${"00".repeat(65)}`;

/**
 * Captures a payment that the service has seen, with the state of the chain that decided it.
 *
 * @param signature `cut` if the file may reach people who must not settle the payment: until it expires, anyone
 * with the signature can submit it to the token
 * @throws {KitError} when the chain does not have that state any more
 */
export async function capturePayment(
  record: PaymentRecord,
  request: PaymentRequest,
  {
    chain,
    contracts,
    payTo = "contract",
    signature,
  }: {
    chain: ReadableChain;
    contracts: ExplainContext["contracts"];
    /** Where the service lets payments go. */
    payTo?: ExplainContext["payTo"];
    signature: Capture["signature"];
  },
): Promise<Capture> {
  const summary = summaryOf(record);
  const { transaction, ledger } = summary;
  const view = summary.settle ?? summary.verify;
  const { operation, checks: judged } = newestJudged(record);
  const { entries } = record;
  const isAfterwards =
    judged !== undefined &&
    entries
      .slice(0, entries.indexOf(judged))
      .some((entry) => entry.kind === "settlement" && entry.step === "settled");
  const checks = entries.flatMap((entry) => (entry.kind === "checks" ? entry.checks : []));
  const signatureCheck = checks.findLast(({ check }) => check === "signatureHolds");
  const isForeign = checks.some(({ check, refusal }) => check === "payToIsOwn" && refusal !== undefined);
  const mayGoStraight = payTo !== "contract" && !isForeign;
  const context = { contracts, tokens: { [chain.network.name]: [chain.asset] } };
  return {
    x402Capture: 1,
    kit: kitVersion(),
    capturedAt: new Date().toISOString(),
    operation,
    request: shownBody(record, request, context, signature === "kept" ? (text) => text : withoutSecret),
    signature,
    signatureRefusal: signatureCheck?.refusal
      ? { reason: signatureCheck.refusal.reason, message: signatureCheck.refusal.message }
      : null,
    outcome: view?.outcome ?? "open",
    reason: view?.reason ?? null,
    message: view?.message ?? null,
    ledger,
    transaction,
    chain: {
      ...(await readCapturedChain(chain, request, {
        transaction,
        isAfterwards,
        head: judged?.block?.number,
      })),
      mayGoStraight,
    },
    timeline: linesOf(record).timeline,
  };
}

/** The ending that marks an undeployed wallet (ERC-6492) stays. */
function withoutSecret(signature: Hex): Hex {
  return isErc6492(signature) ? `${cutSignature}${signature.slice(-64)}` : cutSignature;
}

/**
 * Reads the state of the chain that decided a payment: at the block that was the newest then. Where that is not known, it is
 * the one before that of the payment's transaction, or the newest one now.
 *
 * @throws {KitError} when the node does not have the state of that block any more
 */
async function readCapturedChain(
  chain: ReadableChain,
  request: PaymentRequest,
  {
    transaction,
    isAfterwards,
    head,
  }: {
    transaction: string | null;
    /** True if the payment was judged once more when its transaction was mined. */
    isAfterwards: boolean;
    /** The block that was the newest to the service. */
    head: bigint | undefined;
  },
): Promise<Omit<CapturedChain, "mayGoStraight">> {
  const { network, facilitatorContract, asset, statesKept, ask } = chain;

  /** The state at a block, worked out from a later one where the node has forgotten it. */
  async function stateAt(number: bigint): Promise<CapturedState | undefined> {
    const read = await readState(chain, request, number);
    const newest = read === undefined && statesKept !== undefined ? await block("latest") : undefined;
    if (newest === undefined || statesKept === undefined) return read;
    // Blocks go on being mined meanwhile.
    const oldest = newest.number - BigInt(Math.floor(statesKept / 2));
    const at = oldest > number ? oldest : number;
    const state = await readState(chain, request, at);
    return state && rewindState(chain, request, { to: number, at, state });
  }

  async function block(tag: string): Promise<{ number: bigint; time: number } | undefined> {
    const { result } = await ask("eth_getBlockByNumber", tag, false);
    const { number, timestamp } = membersOf(result);
    const read = [readQuantity(number), readQuantity(timestamp)] as const;
    return read[0] === undefined || read[1] === undefined
      ? undefined
      : { number: read[0], time: Number(read[1]) };
  }

  async function minedIn(hash: string): Promise<bigint | undefined> {
    const { result } = await ask("eth_getTransactionReceipt", hash);
    return readQuantity(membersOf(result).blockNumber);
  }

  const mined = transaction === null ? undefined : await minedIn(transaction);
  const before = head ?? (mined === undefined || mined === 0n ? undefined : mined - 1n);
  const isMinedLater = isAfterwards && mined !== undefined && mined > (head ?? 0n);
  const decided = isMinedLater ? mined : before;
  const at = await block(decided === undefined ? "latest" : quantity(decided));
  if (at === undefined) throw new KitError(`No node of ${network.name} has the block of the payment`);
  const state = await stateAt(at.number);
  if (state === undefined) {
    throw new KitError(`The state of block ${at.number} of ${network.name} is gone`, {
      hints: [
        "Nodes keep the newest blocks, and archive nodes all. Capture a payment soon after it was made.",
      ],
    });
  }
  return {
    network: network.name,
    chainId: network.chainId,
    facilitatorContract,
    asset,
    blockNumber: Number(at.number),
    time: at.time,
    ...state,
  };
}

/** The state of a chain at a block that decides about a payment. */
export type CapturedState = ReturnType<typeof writePayerState> &
  Pick<CapturedChain, "payerHasCode" | "walletAccepts">;

type StateReader = Pick<ReadableChain, "network" | "asset" | "facilitatorContract" | "ask">;

/** Reads the state at a block; undefined where the node does not have it any more. */
async function readState(
  { network, asset, ask }: StateReader,
  { payment }: PaymentRequest,
  block: bigint,
): Promise<CapturedState | undefined> {
  const tag = quantity(block);
  const { payer, signature } = payment;
  const digest = methodOf(payment).digester(asset, network.chainId)(payment);
  const code = await ask("eth_getCode", payer, tag);
  const payerHasCode = typeof code.result === "string" && code.result !== "0x";
  const call = { to: payer, data: encodeIsValidSignature(digest, signature) };
  const [state, wallet] = await Promise.all([
    askPayerState(ask, paymentIn(payment, asset), tag),
    payerHasCode ? ask("eth_call", call, tag) : undefined,
  ]);
  if (state === undefined || code.error !== undefined) return undefined;
  const accepts = String(wallet?.result).startsWith(isValidSignatureSelector);
  return { ...writePayerState(state), payerHasCode, walletAccepts: payerHasCode ? accepts : null };
}

/**
 * Works out the state at a block from that at a later one. The payer's code, and what it says of the signature, are those of
 * the later block.
 *
 * @returns undefined when the node does not give the logs
 */
export async function rewindState(
  { asset, ask, facilitatorContract }: StateReader,
  { payment }: PaymentRequest,
  { to, at, state }: { to: bigint; at: bigint; state: CapturedState },
): Promise<CapturedState | undefined> {
  const earlier = await rewindPayerState({ ask, facilitatorContract }, paymentIn(payment, asset), {
    to,
    at,
    state: readPayerState(state),
  });
  return earlier && { ...state, ...writePayerState(earlier) };
}
