import type { PaymentRequest } from "../../protocol/requests.ts";
import { KitError } from "../../util/errors.ts";
import type { CapturedChain } from "./capture.ts";
import { type CapturedState, readState, rewindState } from "./captured-state.ts";
import type { ReadableChain } from "./readable-chain.ts";

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
export async function readCapturedChain(
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
