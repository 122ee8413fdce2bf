import type { ChainQueries, Effect, Receipt } from "../../../chain/chain.ts";
import { readReceiptsAt } from "../../../chain/receipt-reader.ts";
import { balanceOf } from "../../../chain/views.ts";
import { addressWord, sameAddress } from "../../../protocol/hex.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import type { Payout, Search } from "../../on-chain/settling.ts";
import { encodeTransfer } from "./eip3009-calls.ts";
import { authorizationStateOf } from "./eip3009-state.ts";
import { authorizationKey, authorizationUsedTopic, decodeEvents, type PaymentEvent } from "./events.ts";

/*
 * Payments that go straight to where they were signed to, by the token's `transferWithAuthorization`. Anybody can submit
 * one, and whoever does, the payee has the money.
 */

/**
 * The most gas that the token may use for one payment, and with it the code at the payer's address: as much as the
 * facilitator contract gives it (PULL_GAS), so that a payment fails alone as it does in a batch.
 */
export const transferGas = 250_000n;

/**
 * What such a payment changes. A transaction that is not reverted does not say so: tokens that charge a fee move another
 * amount, and some do nothing and say nothing when an authorization was used.
 */
export function effectOf(payment: SignedPayment): Effect {
  const { asset, payer, payTo, nonce, limit } = payment;
  const used = authorizationStateOf(asset, payer, nonce);
  const held = balanceOf(asset, payTo);
  const transfer = { target: asset, data: encodeTransfer(payment), gas: Number(transferGas), changes: true };
  const gain = sameAddress(payer, payTo) ? 0n : limit;
  return {
    views: [used, held, transfer, used, held],
    isThere(results) {
      const [usedBefore, before, , usedAfter, after] = results.map(({ word }) => word && BigInt(word));
      if (before === undefined || after === undefined) return false;
      return usedBefore === 0n && usedAfter === 1n && after - before === gain;
    },
  };
}

type Transfer = Extract<PaymentEvent, { name: "Transfer" }>;

/**
 * What each authorization that a transaction has used moved, by its key. The token emits `AuthorizationUsed` and, with no
 * call in between, the `Transfer`: a pair that stands next to each other belongs together.
 */
function readTransfers(receipt: Receipt): ReadonlyMap<string, Transfer> {
  const events = decodeEvents(receipt);
  const byIndex = new Map(events.map((event) => [event.logIndex, event]));
  return new Map(
    events.flatMap((event): [string, Transfer][] => {
      if (event.name !== "AuthorizationUsed") return [];
      const next = byIndex.get(event.logIndex + 1);
      const isOfIt = next?.name === "Transfer" && next.emitter === event.emitter && next.from === event.payer;
      return isOfIt ? [[authorizationKey(event), next]] : [];
    }),
  );
}

/** Which payments the logs of a transaction prove to have gone straight to where they were signed to, whoever sent it. */
export function readStraightPayments(receipt: Receipt): (payment: SignedPayment) => boolean {
  let transfers: ReadonlyMap<string, Transfer> | undefined;
  return ({ asset: token, payer, nonce: authorizationNonce, payTo, limit }) => {
    transfers ??= readTransfers(receipt);
    const moved = transfers.get(authorizationKey({ token, payer, authorizationNonce }));
    return moved !== undefined && sameAddress(moved.to, payTo) && moved.value === limit;
  };
}

/** {@link Settling.findPayout} of these payments: whoever submitted it. */
export async function findStraightPayout(
  { reader, readLogs }: ChainQueries,
  { payment, fromBlock, toBlock, id: about }: Search,
): Promise<Payout | null> {
  const topics = [authorizationUsedTopic, `0x${addressWord(payment.payer)}` as const, payment.nonce];
  for await (const logs of readLogs([{ address: payment.asset, topics, about }], fromBlock, toBlock)) {
    for (const receipt of await readReceiptsAt(reader, logs)) {
      const { hash, blockNumber, blockHash } = receipt;
      if (readStraightPayments(receipt)(payment)) return { kind: "settled", hash, blockNumber, blockHash };
    }
  }
  return null;
}
