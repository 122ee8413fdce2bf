import type { Invalid } from "../../protocol/catalogue.ts";
import { channelInvalid } from "../../protocol/channel-reasons.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { channelId, claimBatchDigest, refundDigest, type VoucherClaim } from "./channel.ts";
import { type ChannelSource, readChannel } from "./channel-source.ts";
import { type RefundPayload, refundOf, withPayload } from "./payloads.ts";
import { authorizerFor } from "./plan-claim.ts";
import { refuseVoucherSignature } from "./vouchers.ts";

/*
 * Refunds pay a buyer what is left in a channel. Charges that are not claimed yet are claimed first, in the same transaction:
 * otherwise the refund would take them.
 */

/** Refuses a refund that would revert. */
export function refundReverts(why: string): Invalid {
  return channelInvalid("refund_simulation_failed", `The refund would revert on chain: ${why}`);
}

/** Returns the refund to send: with the signatures that its shop leaves to the facilitator, and without pointless claims. */
export async function planRefund(
  source: ChannelSource,
  payment: SignedPayment,
): Promise<SignedPayment | Invalid> {
  const refund = refundOf(payment);
  const { config, voucher, refundNonce, claims } = refund;
  const { network } = source;
  const { chainId } = network;
  const id = channelId(config, chainId);
  if (
    [id, ...claims.map(({ channel }) => channelId(channel, chainId))].some((one) => one !== voucher.channelId)
  ) {
    const fact = ` is ${voucher.channelId}, but channelConfig and claims must be of that channel`;
    return channelInvalid("channel_id_mismatch", fact, "voucher.channelId");
  }
  const wrong = await refuseVoucherSignature(source, id, config, voucher);
  if (wrong !== undefined) return wrong;
  const state = await readChannel(source, id);
  const largest = claims.reduce<VoucherClaim | undefined>(
    (most, one) => (most === undefined || one.totalClaimed > most.totalClaimed ? one : most),
    undefined,
  );
  const total = largest?.totalClaimed ?? 0n;
  const gain = total > state.totalClaimed ? total - state.totalClaimed : 0n;
  const free = state.balance - state.totalClaimed - gain;
  if (free <= 0n) return channelInvalid("refund_no_balance", `Nothing of channel ${id} is left to refund`);
  if (refundNonce !== state.refundNonce) {
    const fact = ` is ${refundNonce}, but that of the channel is ${state.refundNonce}`;
    return channelInvalid("refund_simulation_failed", fact, "refundNonce");
  }
  const signed = sign();
  if ("reason" in signed) return signed;
  const payload: RefundPayload = {
    ...refund,
    ...signed,
    claims: gain === 0n ? [] : claims,
    ids: gain === 0n ? [] : claims.map(() => id),
    // The contract skips rows that claim no more than an earlier one.
    gains: claims.map((claim) => (claim === largest ? gain : 0n)),
    refunds: refund.amount < free ? refund.amount : free,
  };
  return withPayload(payment, payload);

  /** Adds the signatures that the shop leaves to the facilitator. */
  function sign(): Pick<RefundPayload, "signature" | "claimSignature" | "amount"> | Invalid {
    const { signature, claimSignature } = refund;
    // Anyone who sees the signature can submit the refund without the claim, so never sign more than the claim leaves.
    const amount = signature === "0x" && free < refund.amount ? free : refund.amount;
    const needsClaim = gain > 0n && claimSignature === "0x";
    if (signature !== "0x" && !needsClaim) return { signature, claimSignature, amount };
    const authorizer = authorizerFor(network, [config.receiverAuthorizer]);
    if ("reason" in authorizer) return authorizer;
    return {
      signature:
        signature === "0x" ? authorizer.sign(refundDigest(id, refundNonce, amount, chainId)) : signature,
      amount,
      claimSignature: needsClaim ? authorizer.sign(claimBatchDigest(claims, chainId)) : claimSignature,
    };
  }
}
