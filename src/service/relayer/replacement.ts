import type { Chain } from "../../chain/chain.ts";
import { estimateFees, feeCap, isReplacementDue, noopTransaction, raiseFees } from "../../chain/fees.ts";
import type { Head } from "../../chain/rpc/calls.ts";
import type { Signer } from "../../chain/signing/local-signer.ts";
import type { Claims } from "../../ledger/ledger.ts";
import type { Attempt, AttemptKind } from "../../ledger/settlement.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { type Batch, callOf, codesOf, networkOf, type Slot, type TransactionStore } from "./slot.ts";

export type ReplacementOptions = {
  chain: Chain;
  signer: Signer;
  ways: WaysToPay;
  store: Pick<TransactionStore, "addAttempt">;
  now: () => number;
  log: ServiceLog;
};

/**
 * Makes the function that replaces a transaction that is not mined: by the same settlements with higher fees, or by a
 * no-op that frees the txNonce. The no-op is used if all authorizations have expired, or if no node holds any attempt,
 * such as one that is too large for them. Returns the stored attempt; undefined if none is due, if the fee cap or the
 * gas money leaves no room, or if the txNonce was closed meanwhile.
 */
export function createReplace(
  options: ReplacementOptions,
): (slot: Slot, about: { isHeld: boolean; others: bigint }) => Promise<Attempt | undefined> {
  const { chain, signer, ways, store, now, log } = options;
  const { network } = chain;

  /** Decides the next attempt of a txNonce. */
  function renew(
    { settlements, attempts }: Slot,
    { newest, isHeld, head }: { newest: Attempt; isHeld: boolean; head: Head },
  ): { kind: AttemptKind; to: Address; data: Hex; gas: bigint } {
    const [first] = settlements;
    const settling = first && ways.settlingOf(first.method);
    const calls = settlements.map((claim) => callOf(claim, network));
    const [call] = calls;
    // A forward does not expire: the payer has paid already.
    if (
      newest.kind === "forward" &&
      first !== undefined &&
      call !== undefined &&
      settling?.recovery !== undefined
    ) {
      return { kind: "forward", ...settling.recovery.transaction(call, networkOf(network, first)) };
    }
    const isOver = settlements.every(({ window }) => window.last < head.timestamp);
    if (first === undefined || settling === undefined || isOver || !isHeld || newest.kind === "noop") {
      return { kind: "noop", ...noopTransaction(signer.address) };
    }
    const codes = codesOf(attempts);
    const coded = calls.map((call) => ({ ...call, codes }));
    return { kind: "settle", ...settling.transaction(coded, networkOf(network, first)) };
  }

  return async (slot, { isHeld, others }) => {
    if (isHeld && !isReplacementDue(network, now() - slot.attemptedAt)) return undefined;
    const newest = slot.attempts.at(-1);
    if (newest === undefined) return undefined;

    const [head, tip, gasMoney] = await Promise.all([
      chain.head(),
      chain.suggestedTip(),
      chain.nativeBalance(signer.address),
    ]);
    const { kind, ...body } = renew(slot, { newest, isHeld, head });
    const about = { network: network.name, operator: signer.address, txNonce: slot.txNonce };
    const current = estimateFees(head, network, tip);
    const raised = raiseFees(newest, current, feeCap(network, kind));
    // If no node holds the transaction, it need not be outbid.
    const fees = raised ?? (isHeld || kind !== "noop" ? undefined : current);
    if (fees === undefined) {
      log.warn(
        { ...about, maxFeePerGas: network.maxFeePerGas.toString() },
        "a transaction is not mined at the highest fee that is allowed; waiting",
      );
      return undefined;
    }
    const cost = body.gas * fees.maxFeePerGas;
    if (kind === "settle" && cost > (network.maxTransactionCost ?? cost)) {
      log.warn(
        { ...about, needed: cost.toString(), maxTransactionCost: String(network.maxTransactionCost) },
        "a transaction is not mined at the highest cost that is allowed; waiting",
      );
      return undefined;
    }
    // Nodes refuse a transaction if the account cannot pay for it and all before it. Higher fees would make that worse.
    if (gasMoney < others + cost) {
      log.error(
        { ...about, gasMoney: gasMoney.toString(), needed: (others + cost).toString() },
        `the gas money does not suffice for what is under way; nothing more is offered: send native coins to ${signer.address}`,
      );
      return undefined;
    }
    const signed = await signer.signTransaction({
      chainId: network.chainId,
      nonce: slot.txNonce,
      ...body,
      ...fees,
    });
    const attempt: Attempt = {
      ...signed,
      chainId: network.chainId,
      operator: signer.address,
      txNonce: slot.txNonce,
      kind,
      createdAt: now(),
    };
    if (!(await store.addAttempt(attempt))) return undefined;
    log.info({ ...about, kind, hash: attempt.hash }, "replacing a transaction");
    return attempt;
  };
}

/** Makes the function that signs and stores a no-op for a txNonce that nothing else needs. */
export function createFill(options: {
  chain: Chain;
  signer: Signer;
  store: Pick<TransactionStore, "fillTxNonce">;
}): (txNonce: number) => Promise<Batch | null> {
  const { chain, signer, store } = options;
  const { network } = chain;
  return async (txNonce) => {
    const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
    return store.fillTxNonce({ chainId: network.chainId, operator: signer.address, txNonce }, () =>
      signer.signTransaction({
        chainId: network.chainId,
        nonce: txNonce,
        ...noopTransaction(signer.address),
        ...estimateFees(head, network, tip),
      }),
    );
  };
}

/** Closes a txNonce without settlements that was used by a transaction that is not stored. */
export async function closeEmpty(
  claims: Pick<Claims, "redrive">,
  txNonce: { chainId: number; operator: Address; txNonce: number },
): Promise<void> {
  await claims.redrive({ ...txNonce, mined: null }, [], () => {
    throw new KitError("a txNonce without settlements has nothing to sign");
  });
}
