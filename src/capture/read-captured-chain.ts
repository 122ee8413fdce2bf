import { encodeIsValidSignature } from "../chain/contract/calldata.ts";
import { KitError } from "../errors.ts";
import { authorizationDigest, domainSeparator } from "../protocol/authorization.ts";
import { type Address, addressWord, type Hex } from "../protocol/hex.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import type { RpcAnswer } from "../rpc/rpc.ts";
import type { CapturedChain } from "./capture.ts";

/** A chain that a capture reads. No transactions are sent. */
export type ReadableChain = {
  network: Pick<Network, "name" | "chainId">;
  facilitatorContract: Address;
  asset: Asset;
  /** The usual time between its blocks, in milliseconds. */
  blockTimeMs: number;
  /** A node's result of, or error for, one call; throws if the node does not answer. */
  ask(method: string, ...params: readonly unknown[]): Promise<RpcAnswer>;
};

/** The limit of blocks to read in search of the newest one before a time. */
const mostReads = 200;

type Block = { number: number; time: number };

/**
 * Reads the state of the chain that decided a payment: at the block before that of its transaction, or at the newest block
 * when it was asked.
 *
 * @param askedAt unix milliseconds
 * @throws {KitError} when the node does not have the state of that block any more
 */
export async function readCapturedChain(
  { network, facilitatorContract, asset, blockTimeMs, ask }: ReadableChain,
  { authorization, signature }: PaymentRequest,
  { transaction, askedAt }: { transaction: string | null; askedAt: number },
): Promise<CapturedChain> {
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
  const at = await (mined === undefined
    ? newestAt(Math.floor(askedAt / 1_000))
    : block(toQuantity(mined - 1)));
  if (at === undefined) throw new KitError(`No node of ${network.name} has the block of the payment`);
  const tag = toQuantity(at.number);
  const call = async (to: string, data: string): Promise<Hex | undefined> => {
    const { result } = await ask("eth_call", { to, data }, tag);
    // Otherwise a revert: the contract refuses, or lacks the function.
    return typeof result === "string" && result.startsWith("0x") ? (result as Hex) : undefined;
  };
  const isTrue = (answer: Hex | undefined) =>
    answer !== undefined && answer !== "0x" && BigInt(answer) === 1n;
  const { from, nonce } = authorization;
  const digest = authorizationDigest(domainSeparator(asset, network.chainId), authorization);
  const code = await ask("eth_getCode", from, tag);
  const payerHasCode = typeof code.result === "string" && code.result !== "0x";
  const [balance, used, blacklisted, paused, wallet] = await Promise.all([
    call(asset.address, `0x70a08231${addressWord(from)}`),
    call(asset.address, `0xe94a0102${addressWord(from)}${nonce.slice(2)}`),
    // A token without a blacklist has none on it.
    call(asset.address, `0xfe575a87${addressWord(from)}`),
    call(asset.address, "0x5c975abb"),
    payerHasCode ? call(from, encodeIsValidSignature(digest, signature)) : undefined,
  ]);
  if (balance === undefined || balance === "0x" || used === undefined || code.error !== undefined) {
    throw new KitError(`The state of block ${at.number} of ${network.name} is gone`, {
      hints: [
        "Nodes keep the newest blocks, and archive nodes all. Capture a payment soon after it was made.",
      ],
    });
  }
  return {
    ...{ network: network.name, chainId: network.chainId, facilitatorContract, asset },
    blockNumber: at.number,
    time: at.time,
    payerBalance: BigInt(balance).toString(),
    payerHasCode,
    walletAccepts: payerHasCode ? (wallet?.startsWith("0x1626ba7e") ?? false) : null,
    authorizationUsed: isTrue(used),
    payerBlacklisted: isTrue(blacklisted),
    assetPaused: isTrue(paused),
  };
}

const toQuantity = (number: number) => `0x${Math.max(0, number).toString(16)}`;
