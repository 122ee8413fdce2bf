import type { Chain } from "../../../chain/chain.ts";
import type { Invalid } from "../../../protocol/catalogue.ts";
import { channelInvalid } from "../../../protocol/channel-reasons.ts";
import type { AnswerExtra } from "../../../protocol/write-answers.ts";
import { type SettleCall, type Settling, usageOf } from "../../on-chain/settling.ts";
import { channelMethods, voucherOf } from "../payloads.ts";
import { settledAlone, unknownToTests } from "./actions.ts";
import { confirmedBlock, readChannel, stateJson } from "./channel-state.ts";
import { ownedChannel, refuseAmount, refuseVoucherSignature } from "./vouchers.ts";

/** Verifies a voucher of a channel that has a deposit, or a buyer's wish to have the rest of it back. */
async function judge(
  chain: Chain,
  { payment, id: about, price = 0n }: SettleCall,
): Promise<Invalid | AnswerExtra> {
  const { config, voucher, isRefund } = voucherOf(payment);
  const { channelId } = voucher;
  const wrong = await refuseVoucherSignature(chain, channelId, config, voucher);
  if (wrong !== undefined) return wrong;
  const block = await confirmedBlock(chain);
  const state = await readChannel({ reader: chain.reader, about, block }, channelId);
  if (state.balance === 0n) {
    return channelInvalid(
      "channel_not_found",
      ` ${channelId} has no balance on this network`,
      "voucher.channelId",
    );
  }
  const little = refuseAmount(voucher, { ...state, price }, isRefund ? "refund" : "purchase");
  return little ?? { extra: stateJson(channelId, state) };
}

const never = () => {
  throw new Error("a voucher is not settled by itself");
};

/** Vouchers move nothing before a claim. */
export const voucherSettling: Settling = {
  method: channelMethods.voucher,
  judge,
  ownedBy: (payment, network) => ownedChannel(payment, network, false),
  ...settledAlone(never),
  ...unknownToTests,
  plan: never,
  usual: usageOf(0n, { most: 0n, bytes: 0 }),
  prove: never,
  findPayout: never,
  stateOf: never,
  explain: never,
  isUsed: () => Promise.resolve(false),
};
