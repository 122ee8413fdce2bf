import { type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import { identifyPayout } from "../identify.ts";
import { ownedChannels } from "../owners.ts";
import { channelMethods, payoutOf } from "../payloads.ts";
import { payoutReverts, planPayout } from "../plan-payout.ts";
import { contractCall, describeChannelRevert, readAmount, settledAlone, unknownToTests } from "./actions.ts";
import { sourceOf } from "./chain-source.ts";
import { encodeSettleOwed } from "./channel-calls.ts";
import { channelEvents, receiverKey } from "./channel-events.ts";
import { readReceiver } from "./channel-state.ts";

/* `settle` pays a receiver everything that was claimed for it and not paid out yet, in one transfer. Anyone may call it. */

/** A fixed limit, because a lagging node sees nothing to pay and would estimate too little. It uses 67,000. */
const payoutGas = 150_000n;

const transactionOf = ({ payment: { payTo, asset } }: SettleCall) =>
  contractCall(encodeSettleOwed(payTo, asset), payoutGas);

export const payoutSettling: Settling = {
  method: channelMethods.settle,
  identify: (chain, payment, known) => identifyPayout(chain && sourceOf(chain), payment, known),
  async plan(_chain, call) {
    const payment = planPayout(call.payment);
    return "reason" in payment ? payment : { call, transaction: transactionOf(call) };
  },
  ...settledAlone(transactionOf),
  ...unknownToTests,
  usual: usageOf(70_000n, { most: payoutGas, bytes: 68 }),

  prove: (receipt) => ({
    find({ payment: { payTo, asset } }) {
      const isPaid = channelEvents(receipt).some(
        ({ name, key }) => name === "Settled" && key === receiverKey(payTo, asset),
      );
      return isPaid
        ? { settled: true }
        : { settled: false, failure: "the transaction paid nothing: another one had paid it" };
    },
  }),
  findPayout: () => Promise.resolve(null),
  async stateOf({ reader }, { payment: { payTo, asset } }) {
    const { claimed, settled } = await readReceiver({ reader }, payTo, asset);
    return { used: claimed === settled };
  },
  explain: (_chain, _call, revert) => Promise.resolve(payoutReverts(describeChannelRevert(revert))),
  isUsed: () => Promise.resolve(false),

  channels: {
    ownedBy: ownedChannels,
    recordOf({ payment }) {
      const { owed } = payoutOf(payment);
      return { moved: owed, moves: [{ kind: "settle", channel: null, amount: owed }] };
    },
  },

  async describeSettled(chain, { payment: { payTo, asset } }, { hash }) {
    return { amount: await readAmount(chain, hash, { name: "Settled", key: receiverKey(payTo, asset) }) };
  },
};
