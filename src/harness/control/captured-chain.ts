import type { CapturedChain } from "../../capture/capture.ts";
import { KitError } from "../../errors.ts";
import { authorizationDigest, domainSeparator } from "../../protocol/authorization.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { createLocalRpc } from "../../rpc/local-rpc.ts";
import type { HarnessChain } from "../stage/chain.ts";

/** How far back the block of a request is looked for. */
const mostBlocksBack = 2_000;

const word = (hex: string) => hex.slice(2).toLowerCase().padStart(64, "0");

/**
 * Reads what a decision about a payment read of its chain: at the block before that of its transaction, or at the newest
 * one when it was asked.
 *
 * @param askedAt unix milliseconds
 */
export async function readCapturedChain(
  { network, rpcUrl, facilitatorContract, asset, hasBlacklist }: HarnessChain,
  { authorization, signature }: PaymentRequest,
  { transaction, askedAt }: { transaction: string | null; askedAt: number },
): Promise<CapturedChain> {
  const rpc = createLocalRpc(rpcUrl);
  const block = async (which: string) => {
    const found: unknown = await rpc.request("eth_getBlockByNumber", which, false);
    const read = (member: string) => Number(BigInt(String(Reflect.get(Object(found), member))));
    return { number: read("number"), time: read("timestamp") };
  };
  const at = async () => {
    const receipt: unknown =
      transaction === null ? null : await rpc.request("eth_getTransactionReceipt", transaction);
    const mined: unknown = Reflect.get(Object(receipt), "blockNumber");
    if (typeof mined === "string") return block(toQuantity(Number(BigInt(mined)) - 1));
    let candidate = await block("latest");
    for (let back = 0; back < mostBlocksBack && candidate.time > Math.floor(askedAt / 1_000); back++) {
      if (candidate.number === 0) break;
      candidate = await block(toQuantity(candidate.number - 1));
    }
    return candidate;
  };
  const { number, time } = await at();
  const tag = toQuantity(number);
  const call = async (to: string, data: string): Promise<Hex | undefined> => {
    try {
      const answer: unknown = await rpc.request("eth_call", { to, data }, tag);
      return typeof answer === "string" && answer.startsWith("0x") ? (answer as Hex) : undefined;
    } catch {
      // A revert: the contract says no, or does not know the function.
      return undefined;
    }
  };
  const isTrue = (answer: Hex | undefined) =>
    answer !== undefined && answer !== "0x" && BigInt(answer) === 1n;
  const { from, nonce } = authorization;
  const digest = authorizationDigest(domainSeparator(asset, network.chainId), authorization);
  const code: unknown = await rpc.request("eth_getCode", from, tag);
  const payerHasCode = code !== "0x";
  const [balance, used, blacklisted, paused, wallet] = await Promise.all([
    call(asset.address, `0x70a08231${word(from)}`),
    call(asset.address, `0xe94a0102${word(from)}${word(nonce)}`),
    hasBlacklist ? call(asset.address, `0xfe575a87${word(from)}`) : undefined,
    call(asset.address, "0x5c975abb"),
    payerHasCode ? call(from, isValidSignatureCall(digest, signature)) : undefined,
  ]);
  if (balance === undefined || balance === "0x") throw new KitError(`The state of block ${number} is gone`);
  return {
    ...{ network: network.name, chainId: network.chainId, facilitatorContract, asset },
    blockNumber: number,
    time,
    payerBalance: BigInt(balance).toString(),
    payerHasCode,
    walletAccepts: payerHasCode ? (wallet?.startsWith("0x1626ba7e") ?? false) : null,
    authorizationUsed: isTrue(used),
    payerBlacklisted: isTrue(blacklisted),
    assetPaused: isTrue(paused),
  };
}

/** `isValidSignature(bytes32,bytes)` of EIP-1271. */
function isValidSignatureCall(digest: Hex, signature: Hex): Hex {
  const bytes = signature.slice(2);
  const length = (bytes.length / 2).toString(16).padStart(64, "0");
  const padded = bytes.padEnd(Math.ceil(bytes.length / 64) * 64, "0");
  return `0x1626ba7e${word(digest)}${"40".padStart(64, "0")}${length}${padded}`;
}

const toQuantity = (number: number) => `0x${Math.max(0, number).toString(16)}`;
