import type { Chain } from "../../../chain/chain.ts";
import { larger } from "../../../chain/fees.ts";
import { channelInvalid } from "../../../protocol/channel-reasons.ts";
import { keccak256, sameAddress, uintWord } from "../../../protocol/hex.ts";
import type { SignedPayment } from "../../../protocol/signed-payment.ts";
import { type KnownActions, type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import { channelMethods, payoutOf, withPayload } from "../payloads.ts";
import { contractCall, describeChannelRevert, readAmount, settledAlone, unknownToTests } from "./actions.ts";
import { encodeSettleOwed } from "./channel-calls.ts";
import { channelEvents, receiverKey } from "./channel-events.ts";
import { readReceiver } from "./channel-state.ts";
import { identifyByContent } from "./identify.ts";

/* `settle` pays a receiver what was claimed for it and not paid out yet, in one transfer. Anybody may have that done. */

/** A fixed limit: an estimate on a node that lags sees nothing to pay, and is too low. 67,000 are used. */
const payoutGas = 150_000n;

const transactionOf = ({ payment: { payTo, asset } }: SettleCall) =>
  contractCall(encodeSettleOwed(payTo, asset), payoutGas);

/**
 * The payout of what is owed now. Where nothing is, it is one whose success was not delivered, if there is such; and a node that
 * says so is asked again at the block of the newest claim, which it may not have seen.
 */
async function identify(chain: Chain, payment: SignedPayment, known: KnownActions): Promise<SignedPayment> {
  const { payTo, asset } = payment;
  const { reader } = chain;
  let { claimed, settled } = await readReceiver({ reader }, payTo, asset);
  if (claimed === settled) {
    const recent = (await known.recent()).filter((one) => sameAddress(one.asset, asset));
    const open = recent.find(({ method, isOpen }) => method === payment.method && isOpen);
    if (open !== undefined) return { ...payment, nonce: open.nonce };
    const newest = recent.reduce((most, { blockNumber }) => larger(most, blockNumber ?? 0n), 0n);
    const block = larger(newest, (await chain.head()).number);
    ({ claimed, settled } = await readReceiver({ reader, block }, payTo, asset));
  }
  const nonce = keccak256(`${payment.nonce}${uintWord(claimed)}${uintWord(settled)}`);
  return identifyByContent(chain, withPayload({ ...payment, nonce }, { owed: claimed - settled }), known);
}

/** A payout, as one transaction. */
export const payoutSettling: Settling = {
  method: channelMethods.settle,
  identify,
  plan: (_chain, call) =>
    payoutOf(call.payment).owed === 0n
      ? Promise.resolve(channelInvalid("nothing_to_settle", `Nothing is owed to ${call.payment.payTo}`))
      : { call, transaction: transactionOf(call) },
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
  explain: (_chain, _call, revert) =>
    Promise.resolve(
      channelInvalid(
        "settle_simulation_failed",
        `The settle would revert on chain: ${describeChannelRevert(revert)}`,
      ),
    ),
  isUsed: () => Promise.resolve(false),

  ownedBy: ({ payTo: receiver, asset: token }) => ({
    ids: [],
    opens: false,
    receiver: { receiver, token },
    refuse: () =>
      channelInvalid("receiver_mismatch", " has no channel that this organization has opened", "receiver"),
  }),
  channelMoves: ({ payment }) => ({
    moves: [{ kind: "settle", channel: null, amount: payoutOf(payment).owed }],
  }),

  async describeSettled(chain, { payment: { payTo, asset } }, { hash }) {
    return { amount: await readAmount(chain, hash, { name: "Settled", key: receiverKey(payTo, asset) }) };
  },
};
