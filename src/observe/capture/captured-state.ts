import { quantity } from "../../chain/rpc/read-hex.ts";
import { encodeIsValidSignature, isValidSignatureSelector } from "../../chain/views.ts";
import {
  askPayerState,
  type KnownPayment,
  type PayerState,
  rewindPayerState,
} from "../../methods/exact-eip3009/on-chain/state.ts";
import { methodOf } from "../../methods/methods.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { CapturedChain } from "./capture.ts";
import type { ReadableChain } from "./readable-chain.ts";

/** What a payment is judged by, of the state of a chain at a block. */
export type CapturedState = Pick<
  CapturedChain,
  "payerBalance" | "payerHasCode" | "walletAccepts" | "authorizationUsed" | "payerBlacklisted" | "assetPaused"
>;

type StateReader = Pick<ReadableChain, "network" | "asset" | "ask">;

/** Reads the state at a block; undefined where the node does not have it any more. */
export async function readState(
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
