import type { Chain } from "../../../chain/chain.ts";
import { larger } from "../../../chain/fees.ts";
import type { Revert } from "../../../chain/revert.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { channelInvalid } from "../../../protocol/channel-reasons.ts";
import { type Plan, type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import { channelId, claimBatchDigest, refundDigest } from "../channel.ts";
import { channelMethods, type RefundPayload, refundOf, withPayload } from "../payloads.ts";
import { contractCall, describeChannelRevert, readAmount, settledAlone, unknownToTests } from "./actions.ts";
import { encodeClaimWithSignature, encodeMulticall, encodeRefund } from "./channel-calls.ts";
import { channelEvents } from "./channel-events.ts";
import { confirmedBlock, readChannel, stateJson } from "./channel-state.ts";
import { authorizerFor, refuseStranger, unclaimedIn } from "./claim-settling.ts";
import { identifyByContent } from "./identify.ts";
import { refuseVoucherSignature } from "./vouchers.ts";

/*
 * Refunds give a buyer what is left of a channel. What was charged and not claimed yet is claimed before, in the same transaction: it
 * would be gone otherwise.
 */

const refundGas = 200_000n;
const rowGas = 100_000n;

function transactionOf({ payment }: SettleCall) {
  const { config, amount, refundNonce: nonce, claims, signature, claimSignature } = refundOf(payment);
  const refund = encodeRefund(config, { amount, nonce, signature });
  const gas = refundGas + rowGas * BigInt(claims.length);
  if (claims.length === 0) return contractCall(refund, gas);
  return contractCall(encodeMulticall([encodeClaimWithSignature(claims, claimSignature), refund]), gas);
}

async function plan(chain: Chain, call: SettleCall): Promise<Plan | Invalid> {
  const { payment, id: about } = call;
  const refund = refundOf(payment);
  const { config, voucher, refundNonce, claims } = refund;
  const { network, reader } = chain;
  const { chainId } = network;
  const id = channelId(config, chainId);
  if (
    [id, ...claims.map(({ channel }) => channelId(channel, chainId))].some((one) => one !== voucher.channelId)
  ) {
    const fact = ` is ${voucher.channelId}, but channelConfig and claims must be of that channel`;
    return channelInvalid("channel_id_mismatch", fact, "voucher.channelId");
  }
  const wrong = await refuseVoucherSignature(chain, id, config, voucher);
  if (wrong !== undefined) return wrong;
  const state = await readChannel({ reader, about }, id);
  const total = claims.map(({ totalClaimed }) => totalClaimed).reduce((one, other) => larger(one, other), 0n);
  const largest = claims.findIndex(({ totalClaimed }) => totalClaimed === total);
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
    // The contract passes over rows that claim no more than one before them.
    gains: claims.map((_, index) => (index === largest ? gain : 0n)),
    refunds: refund.amount < free ? refund.amount : free,
  };
  const planned = { ...call, payment: withPayload(payment, payload) };
  return { call: planned, transaction: transactionOf(planned) };

  /** The signatures that the shop has left to the facilitator. */
  function sign(): Pick<RefundPayload, "signature" | "claimSignature" | "amount"> | Invalid {
    const { signature, claimSignature } = refund;
    // Whoever sees the signature can have it refunded without the claim: never more than what the claim leaves.
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

function explainRevert(revert: Revert): Invalid {
  return channelInvalid(
    "refund_simulation_failed",
    `The refund would revert on chain: ${describeChannelRevert(revert)}`,
  );
}

/** A refund, as one transaction. */
export const refundSettling: Settling = {
  method: channelMethods.refund,
  identify: identifyByContent,
  plan,
  ...settledAlone(transactionOf),
  ...unknownToTests,
  usual: usageOf(110_000n, { most: refundGas + rowGas, bytes: 1_200 }),

  prove: (receipt) => ({
    find({ payment }) {
      const { voucher, ...refund } = refundOf(payment);
      const isRefunded = channelEvents(receipt).some(
        ({ name, key }) => name === "Refunded" && key === voucher.channelId,
      );
      return isRefunded && unclaimedIn(receipt, refund).length === 0
        ? { settled: true }
        : { settled: false, failure: "the transaction refunded nothing" };
    },
  }),
  findPayout: () => Promise.resolve(null),
  async stateOf({ reader }, { payment }) {
    const { voucher, refundNonce } = refundOf(payment);
    const state = await readChannel({ reader }, voucher.channelId);
    return { used: state.refundNonce > refundNonce };
  },
  explain: (_chain, _call, revert) => Promise.resolve(explainRevert(revert)),
  isUsed: () => Promise.resolve(false),

  ownedBy(payment, { chainId }) {
    const { config, signature, claims, claimSignature } = refundOf(payment);
    const isSigned = signature !== "0x" && (claims.length === 0 || claimSignature !== "0x");
    return isSigned ? undefined : { ids: [channelId(config, chainId)], opens: false, refuse: refuseStranger };
  },
  channelMoves({ payment }) {
    const { voucher, refunds = 0n, gains = [], ids = [] } = refundOf(payment);
    const channel = voucher.channelId;
    const gain = gains.reduce((one, other) => larger(one, other), 0n);
    return {
      moves: [
        { kind: "refund", channel, amount: refunds },
        ...(ids.length > 0 ? [{ kind: "claim", channel, amount: gain } as const] : []),
      ],
    };
  },

  async describeSettled(chain, { payment }, { hash, blockNumber }) {
    const { channelId: id } = refundOf(payment).voucher;
    const block = await confirmedBlock(chain, blockNumber);
    const [amount, state] = await Promise.all([
      readAmount(chain, hash, { name: "Refunded", key: id }),
      readChannel({ reader: chain.reader, block }, id),
    ]);
    return { amount, extra: { channelState: stateJson(id, state) } };
  },
};
