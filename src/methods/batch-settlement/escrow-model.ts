import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { highestS } from "../../protocol/signed-payment.ts";
import { createBoundedMap } from "../../util/cache.ts";
import type { ModelAccounts } from "../payment-model.ts";
import {
  type ChannelConfig,
  channelId,
  claimBatchDigest,
  refundDigest,
  type VoucherClaim,
  voucherDigest,
  voucherKeyOf,
} from "./channel.ts";
import type { ChannelState, ReceiverState } from "./channel-source.ts";
import { hasUsualV } from "./vouchers.ts";

/*
 * A model of the settlement contract: its state on one chain, and its checks in the contract's order. A differential test
 * compares it with the contract.
 */

/** The maximum number of channels; a long-running server forgets the oldest ones. */
const mostKept = 10_000;

const noChannel: ChannelState = { balance: 0n, totalClaimed: 0n, withdrawRequestedAt: 0, refundNonce: 0n };
const noReceiver: ReceiverState = { claimed: 0n, settled: 0n };

export type EscrowModel = ReturnType<typeof createEscrowModel>;

/** The facilitator's own signature, accepted for every authorizer. It is not hex, so no request can contain it. */
export const ownSignature: Hex = "0xown";

export function createEscrowModel(chainId: number, { recover, askWallet }: ModelAccounts) {
  const channels = createBoundedMap<Hex, ChannelState>(mostKept);
  const receivers = createBoundedMap<string, ReceiverState>(mostKept);
  const keyOf = (receiver: Address, token: Address) => `${receiver} ${token}`.toLowerCase();
  const channel = (id: Hex) => channels.get(id) ?? noChannel;
  const receiver = (account: Address, token: Address) => receivers.get(keyOf(account, token)) ?? noReceiver;

  /** Returns true if the account, or its code, accepts the signature. */
  function isSigned(account: Address, digest: Hex, signature: Hex): boolean {
    if (signature === ownSignature) return true;
    const proof = askWallet(chainId, account, digest, signature);
    if (proof !== "no_code") return proof === "accepted";
    const signer = recover(digest, signature);
    return signer !== undefined && sameAddress(signer, account) && hasUsualV(signature);
  }

  function explainVoucher(config: ChannelConfig, digest: Hex, signature: Hex): string | undefined {
    const key = voucherKeyOf(config);
    if (key === undefined) return isSigned(config.payer, digest, signature) ? undefined : "InvalidSignature";
    if (signature.length !== 132) return "ECDSAInvalidSignatureLength";
    if (signature.slice(66, 130).toLowerCase() > highestS) return "ECDSAInvalidSignatureS";
    const signer = hasUsualV(signature) ? recover(digest, signature) : undefined;
    if (signer === undefined) return "ECDSAInvalidSignature";
    return sameAddress(signer, key) ? undefined : "InvalidSignature";
  }

  /** The error of a claim; undefined if it would pass. A channel's total is updated after each of its rows. */
  function explainClaim(rows: readonly VoucherClaim[], signature?: Hex): string | undefined {
    const [first] = rows;
    if (first === undefined) return "EmptyBatch";
    const { receiverAuthorizer: caller } = first.channel;
    if (signature !== undefined && !isSigned(caller, claimBatchDigest(rows, chainId), signature))
      return "InvalidSignature";
    const totals = new Map<Hex, bigint>();
    for (const { channel: config, ...row } of rows) {
      const isAllowed =
        sameAddress(config.receiverAuthorizer, caller) ||
        (signature === undefined && sameAddress(config.receiver, caller));
      if (!isAllowed) return signature === undefined ? "NotAuthorizedToClaim" : "NotReceiverAuthorizer";
      const id = channelId(config, chainId);
      const { balance, totalClaimed } = channel(id);
      if (row.totalClaimed <= (totals.get(id) ?? totalClaimed)) continue;
      if (row.totalClaimed > row.maxClaimableAmount) return "ClaimExceedsCeiling";
      if (row.totalClaimed > balance) return "ClaimExceedsBalance";
      const digest = voucherDigest(id, row.maxClaimableAmount, chainId);
      const wrong = explainVoucher(config, digest, row.signature);
      if (wrong !== undefined) return wrong;
      totals.set(id, row.totalClaimed);
    }
    return undefined;
  }

  /** The error of a refund after the claims that come with it; undefined if it would pass. */
  function explainRefund(
    config: ChannelConfig,
    { amount, nonce, signature }: { amount: bigint; nonce: bigint; signature: Hex },
  ): string | undefined {
    const id = channelId(config, chainId);
    if (nonce !== channel(id).refundNonce) return "InvalidRefundNonce";
    const digest = refundDigest(id, nonce, amount, chainId);
    if (!isSigned(config.receiverAuthorizer, digest, signature)) return "InvalidSignature";
    return amount === 0n ? "ZeroRefund" : undefined;
  }

  /** The undo steps of the newest {@link undoable}. They leave later changes alone. */
  let undone: (() => void)[] = [];

  const putChannel = (id: Hex, changes: Partial<ChannelState>): void =>
    channels.set(id, { ...channel(id), ...changes });

  const putReceiver = (account: Address, token: Address, changes: Partial<ReceiverState>): void =>
    receivers.set(keyOf(account, token), { ...receiver(account, token), ...changes });

  function addBalance(id: Hex, amount: bigint): void {
    putChannel(id, { balance: channel(id).balance + amount });
    undone.unshift(() => putChannel(id, { balance: channel(id).balance - amount }));
  }

  return {
    channel,
    receiver,
    explainClaim,
    explainRefund,

    deposit(id: Hex, amount: bigint): void {
      addBalance(id, amount);
    },
    claim(rows: readonly VoucherClaim[]): void {
      for (const { channel: config, totalClaimed } of rows) {
        const id = channelId(config, chainId);
        const before = channel(id);
        const gain = totalClaimed - before.totalClaimed;
        if (gain <= 0n || totalClaimed > before.balance) continue;
        const shop = [config.receiver, config.token] as const;
        putChannel(id, { totalClaimed });
        putReceiver(...shop, { claimed: receiver(...shop).claimed + gain });
        undone.unshift(() => {
          // A later claim covers this one.
          if (channel(id).totalClaimed !== totalClaimed) return;
          putChannel(id, { totalClaimed: before.totalClaimed });
          putReceiver(...shop, { claimed: receiver(...shop).claimed - gain });
        });
      }
    },
    /** Pays out everything owed. */
    settle(account: Address, token: Address): void {
      const { claimed, settled } = receiver(account, token);
      putReceiver(account, token, { settled: claimed });
      undone.unshift(() => {
        if (receiver(account, token).settled === claimed) putReceiver(account, token, { settled });
      });
    },
    /** Refunds at most this amount. Returns the refunded amount. */
    refund(id: Hex, amount: bigint): bigint {
      const { balance, totalClaimed, refundNonce } = channel(id);
      const free = balance - totalClaimed;
      const refunded = amount < free ? amount : free;
      addBalance(id, -refunded);
      putChannel(id, { refundNonce: refundNonce + 1n });
      undone.unshift(() => {
        if (channel(id).refundNonce === refundNonce + 1n) putChannel(id, { refundNonce });
      });
      return refunded;
    },
    /** Runs some work and returns a function that undoes it. */
    undoable(work: () => void): () => void {
      undone = [];
      work();
      const own = undone;
      return () => {
        for (const undo of own) undo();
      };
    },
  };
}
