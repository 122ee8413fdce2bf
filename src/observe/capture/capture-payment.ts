import { encodeIsValidSignature, isValidSignatureSelector } from "../../chain/views.ts";
import {
  askPayerState,
  type KnownPayment,
  type PayerState,
  rewindPayerState,
} from "../../methods/exact-eip3009/on-chain/state.ts";
import { methodOf } from "../../methods/methods.ts";
import { type Hex, quantity } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { isErc6492 } from "../../protocol/signed-payment.ts";
import { KitError } from "../../util/errors.ts";
import { kitVersion } from "../../util/self-command.ts";
import type { ExplainContext } from "../explain/explain-input.ts";
import { shownBody } from "../studio/payment-body.ts";
import type { LoggedPayment } from "../studio/payment-log.ts";
import type { Capture, CapturedChain } from "./capture-format.ts";
import type { ReadableChain } from "./payment-use.ts";

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
  { summary, body, timeline }: LoggedPayment,
  request: PaymentRequest,
  {
    chain,
    contracts,
    signature,
    headAt,
  }: {
    chain: ReadableChain;
    contracts: ExplainContext["contracts"];
    signature: Capture["signature"];
    /** The number of the block that was the newest to the service at a time, in unix milliseconds, where that is known. */
    headAt?: ((at: number) => bigint | undefined) | undefined;
  },
): Promise<Capture> {
  const { transaction, ledger } = summary;
  const operation = summary.settle === null ? "verify" : "settle";
  const view = summary.settle ?? summary.verify;
  const asked = timeline.findLast(({ kind, title }) => kind === "request" && title.endsWith(operation));
  // Another verify may have been judged since.
  const place = timeline.findLastIndex(
    ({ kind, requestId }) => kind === "check" && requestId === asked?.requestId,
  );
  const judged = timeline[place];
  const isAfterwards = timeline
    .slice(0, Math.max(place, 0))
    .some(({ kind, title }) => kind === "ledger" && title === "settled");
  const checked = timeline.findLast(({ kind, title }) => kind === "check" && title === "signatureHolds");
  const context = { contracts, tokens: { [chain.network.name]: [chain.asset] } };
  return {
    x402Capture: 1,
    kit: kitVersion(),
    capturedAt: new Date().toISOString(),
    operation,
    request: shownBody({ request, body }, context, signature === "kept" ? (text) => text : withoutSecret),
    signature,
    signatureRefusal:
      checked === undefined || checked.ok
        ? null
        : { reason: String(checked.details.reason), message: String(checked.details.message) },
    outcome: view?.outcome ?? "open",
    reason: view?.reason ?? null,
    message: view?.message ?? null,
    ledger,
    transaction,
    chain: await readCapturedChain(chain, request, {
      ...{ transaction, isAfterwards, askedAt: asked?.at ?? summary.lastSeenAt },
      head: judged && headAt?.(judged.at),
    }),
    timeline,
  };
}

/** The ending that marks an undeployed wallet (ERC-6492) stays. */
function withoutSecret(signature: Hex): Hex {
  return isErc6492(signature) ? `${cutSignature}${signature.slice(-64)}` : cutSignature;
}

/** The limit of blocks to read in search of the newest one before a time. */
const mostReads = 200;

type Block = { number: number; time: number };

/**
 * Reads the state of the chain that decided a payment: at the block that was the newest then. Where that is not known, it is
 * the one before that of the payment's transaction, or the newest one at the time of the request.
 *
 * @param askedAt unix milliseconds
 * @throws {KitError} when the node does not have the state of that block any more
 */
async function readCapturedChain(
  chain: ReadableChain,
  request: PaymentRequest,
  asked: {
    transaction: string | null;
    /** Whether the payment was judged once more when its transaction was mined. */
    isAfterwards?: boolean;
    askedAt: number;
    head?: bigint | undefined;
  },
): Promise<CapturedChain> {
  const { network, facilitatorContract, asset, blockTimeMs, statesKept, ask } = chain;
  const { transaction, isAfterwards = false, askedAt, head } = asked;

  /** The state at a block, worked out from a later one where the node has forgotten it. */
  async function stateAt(wanted: bigint): Promise<CapturedState | undefined> {
    const read = await readState(chain, request, wanted);
    const newest = read === undefined && statesKept !== undefined ? await block("latest") : undefined;
    if (newest === undefined || statesKept === undefined) return read;
    // Blocks go on being mined meanwhile.
    const oldest = BigInt(newest.number) - BigInt(Math.floor(statesKept / 2));
    const at = oldest > wanted ? oldest : wanted;
    const state = await readState(chain, request, at);
    return state && rewindState(chain, request, { to: wanted, at, state });
  }

  async function block(which: string): Promise<Block | undefined> {
    const { result } = await ask("eth_getBlockByNumber", which, false);
    const read = (member: string): unknown => Reflect.get(Object(result), member);
    const [number, timestamp] = [read("number"), read("timestamp")];
    if (typeof number !== "string" || typeof timestamp !== "string") return undefined;
    return { number: Number(BigInt(number)), time: Number(BigInt(timestamp)) };
  }

  async function minedIn(hash: string): Promise<number | undefined> {
    const { result } = await ask("eth_getTransactionReceipt", hash);
    const number: unknown = Reflect.get(Object(result), "blockNumber");
    return typeof number === "string" ? Number(BigInt(number)) : undefined;
  }

  /** The newest block that is not after a time in unix seconds. Estimates its number by the block time. */
  async function newestAt(time: number): Promise<Block | undefined> {
    let candidate = await block("latest");
    let reads = 1;
    while (candidate !== undefined && candidate.time > time && candidate.number > 0 && reads++ < mostReads) {
      const back = Math.max(1, Math.floor((candidate.time - time) / (blockTimeMs / 1_000)));
      candidate = await block(toQuantity(candidate.number - back));
    }
    for (;;) {
      const next =
        candidate && reads++ < mostReads ? await block(toQuantity(candidate.number + 1)) : undefined;
      if (next === undefined || next.time > time) return candidate;
      candidate = next;
    }
  }

  const mined = transaction === null ? undefined : await minedIn(transaction);
  const wanted =
    isAfterwards && mined !== undefined
      ? Math.max(mined, Number(head ?? 0n))
      : head !== undefined
        ? Number(head)
        : mined === undefined
          ? undefined
          : mined - 1;
  const at = await (wanted === undefined ? newestAt(Math.floor(askedAt / 1_000)) : block(toQuantity(wanted)));
  if (at === undefined) throw new KitError(`No node of ${network.name} has the block of the payment`);
  const state = await stateAt(BigInt(at.number));
  if (state === undefined) {
    throw new KitError(`The state of block ${at.number} of ${network.name} is gone`, {
      hints: [
        "Nodes keep the newest blocks, and archive nodes all. Capture a payment soon after it was made.",
      ],
    });
  }
  return {
    ...{ network: network.name, chainId: network.chainId, facilitatorContract, asset },
    ...{ blockNumber: at.number, time: at.time },
    ...state,
  };
}

const toQuantity = (number: number) => `0x${Math.max(0, number).toString(16)}`;

/** What a payment is judged by, of the state of a chain at a block. */
export type CapturedState = Pick<
  CapturedChain,
  "payerBalance" | "payerHasCode" | "walletAccepts" | "authorizationUsed" | "payerBlacklisted" | "assetPaused"
>;

type StateReader = Pick<ReadableChain, "network" | "asset" | "ask">;

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
    askPayerState(ask, { ...payment, asset: asset.address }, tag),
    payerHasCode ? ask("eth_call", call, tag) : undefined,
  ]);
  if (state === undefined || code.error !== undefined) return undefined;
  const accepts = String(wallet?.result).startsWith(isValidSignatureSelector);
  return { ...written(state), payerHasCode, walletAccepts: payerHasCode ? accepts : null };
}

/**
 * Works out the state at a block from that at a later one. The payer's code, and what it says of the signature, are those of
 * the later block.
 *
 * @returns undefined when the node does not give the logs
 */
export async function rewindState(
  { asset, ask }: StateReader,
  { payment }: PaymentRequest,
  { to, at, state }: { to: bigint; at: bigint; state: CapturedState },
): Promise<CapturedState | undefined> {
  const known: KnownPayment = { ...payment, asset: asset.address };
  const later: PayerState = {
    ...{ used: state.authorizationUsed, balance: BigInt(state.payerBalance) },
    ...{ payerBlacklisted: state.payerBlacklisted, tokenPaused: state.assetPaused },
  };
  const earlier = await rewindPayerState(ask, known, { to, at, state: later });
  return earlier && { ...state, ...written(earlier) };
}

/** The members of a capture that say it. */
function written({ balance, used, payerBlacklisted, tokenPaused }: PayerState) {
  return {
    payerBalance: `${balance}`,
    authorizationUsed: used,
    payerBlacklisted,
    assetPaused: tokenPaused,
  };
}
