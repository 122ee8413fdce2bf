import { larger } from "../../../chain/fees.ts";
import { type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import { stateJson } from "../channel-source.ts";
import { identifyByContent } from "../identify.ts";
import { ownedChannels } from "../owners.ts";
import { channelMethods, refundOf } from "../payloads.ts";
import { planRefund, refundReverts } from "../plan-refund.ts";
import { contractCall, describeChannelRevert, readAmount, settledAlone, unknownToTests } from "./actions.ts";
import { sourceOf } from "./chain-source.ts";
import { encodeClaimWithSignature, encodeMulticall, encodeRefund } from "./channel-calls.ts";
import { channelEvents } from "./channel-events.ts";
import { confirmedBlock, readChannel } from "./channel-state.ts";
import { unclaimedIn } from "./claim-settling.ts";

/* Settles refunds, together with the claims that come before them. */

const refundGas = 200_000n;
const rowGas = 100_000n;

function transactionOf({ payment }: SettleCall) {
  const { config, amount, refundNonce: nonce, claims, signature, claimSignature } = refundOf(payment);
  const refund = encodeRefund(config, { amount, nonce, signature });
  const gas = refundGas + rowGas * BigInt(claims.length);
  if (claims.length === 0) return contractCall(refund, gas);
  return contractCall(encodeMulticall([encodeClaimWithSignature(claims, claimSignature), refund]), gas);
}

export const refundSettling: Settling = {
  method: channelMethods.refund,
  identify: identifyByContent,
  async plan(chain, call) {
    const payment = await planRefund(sourceOf(chain, call.id), call.payment);
    if ("reason" in payment) return payment;
    const planned = { ...call, payment };
    return { call: planned, transaction: transactionOf(planned) };
  },
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
  explain: (_chain, _call, revert) => Promise.resolve(refundReverts(describeChannelRevert(revert))),
  isUsed: () => Promise.resolve(false),

  channels: {
    ownedBy: ownedChannels,
    recordOf({ payment }) {
      const { voucher, refunds = 0n, claims } = refundOf(payment);
      const channel = voucher.channelId;
      const amount = claims.reduce((most, { totalClaimed }) => larger(most, totalClaimed), 0n);
      return {
        moved: refunds,
        moves: [
          { kind: "refund", channel, amount: refunds },
          ...(claims.length > 0 ? [{ kind: "claim", channel, amount } as const] : []),
        ],
      };
    },
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
